"""What the authors' own code gave, replayed: see reference/README.md for how it was recorded."""

import pytest
import torch

from attakit.engine.loop import answer, learn
from attakit.label import Budget, Callback, Ledger
from attakit.methods import METHODS
from attakit.queries import Allowance
from recorded_runs import FOLDER, labelled_stream, network, recording, stream

NAMES = ("batch_norm", "batch_norm_mixture", "tent", "eata", "sar", "cotta")
RUNS = {f"{name}: {run['name']}": (name, run) for name in NAMES for run in recording(name)["runs"]}
SIMATTA = {run["name"]: run for run in recording("simatta")["runs"]}
CLOSE = 5e-4  # both sides agree to 3e-5 on one machine


def test_every_file_says_where_its_numbers_come_from():
    files = sorted(FOLDER.glob("*.json"))

    assert files
    for file in files:
        found = recording(file.stem)
        assert found["repository"].startswith("github.com/")
        assert len(found["commit"]) == 40
        assert all(run["theirs"] for run in found["runs"])


def replayed(name, run):
    """Logits of every batch, and what the method counted there."""
    kind = METHODS[name.removesuffix("_mixture")]
    source = {"source_inputs": labelled_stream(1, 64, seed=4)[0][0].inputs}
    method = kind(network(run["network"]), **run["settings"], **(source if name == "eata" else {}))
    return [method.step(batch, Allowance(0)) for batch in stream()]


@pytest.mark.parametrize("label", RUNS)
def test_answers_are_those_of_the_authors_code(label):
    name, run = RUNS[label]

    steps = replayed(name, run)

    logits = [step.prediction.logits for step in steps]
    if name == "cotta":
        logits = [each.log_softmax(dim=1) for each in logits]
    for mine, theirs in zip(logits, run["logits"], strict=True):
        torch.testing.assert_close(mine, torch.tensor(theirs), atol=CLOSE, rtol=CLOSE)
    if "kept" in run:
        assert [step.numbers["kept"] for step in steps] == run["kept"]


@pytest.mark.parametrize("label", [label for label in RUNS if "batch_norm" not in label])
def test_the_recorded_answers_are_not_those_of_a_model_that_does_not_train(label):
    _, run = RUNS[label]
    still = METHODS["batch_norm"](network(run["network"]))
    last = still.predict(stream()[-1].inputs).logits

    theirs = torch.tensor(run["logits"][-1])

    apart = (theirs.log_softmax(dim=1) - last.log_softmax(dim=1)).abs().max()
    assert float(apart) > 50 * CLOSE


@pytest.mark.parametrize("label", SIMATTA)
def test_simatta_asks_stores_and_trains_as_the_authors_code(label):
    run = SIMATTA[label]
    batches, labels = labelled_stream(**run["stream"])
    method = METHODS["simatta_reference"](network(run["network"]), **run["settings"])
    ledger, oracle = Ledger(Budget(None)), Callback(labels.__getitem__)

    for number, batch in enumerate(batches):
        step, seconds = answer(batch, method, ledger.budget.allowance)
        training = learn(batch, step, seconds, method, oracle, ledger).training

        theirs = torch.tensor(run["logits"][number])
        torch.testing.assert_close(
            step.prediction.logits[: len(theirs)], theirs, atol=CLOSE, rtol=CLOSE
        )
        assert [query.sample for query in step.queries] == run["asked"][number]
        assert len(method.source_like_anchors) == run["source_like"][number]
        assert training.updates == run["updates"][number]
    weights = method.labelled_anchors.rows.weights.tolist()
    assert weights == pytest.approx(run["weights"], abs=1e-3)
