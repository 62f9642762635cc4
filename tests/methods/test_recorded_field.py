"""Methods without labels answer as their authors' code did, on a small network and stream.

Random draws (views, orders of patches) were attakit's own, handed to that code. See
reference/README.md.
"""

import pytest
import torch

from attakit.methods import LAME, METHODS, ROID, DeYO, RoTTA
from attakit.queries import Allowance
from attakit.records import Batch
from recorded_runs import CLASSES, network, recording, stream

# Corrected logits of ROID and CMF are those of the recording times the number of classes.
FACTORS = {"cmf": CLASSES, "deyo": 1, "note": 1, "rdumb": 1, "roid": CLASSES, "rotta": 1}
CLOSE = {"atol": 5e-4, "rtol": 1e-4}  # both sides agree to 3e-5 on one machine


def only_run(name):
    (run,) = recording(name)["runs"]
    return run


def answers(method, batches):
    return [method.step(batch, Allowance(0)) for batch in batches]


@pytest.mark.parametrize("name", FACTORS)
def test_answers_along_a_stream_are_those_of_the_authors_code(name):
    run = only_run(name)
    steps = answers(METHODS[name](network(), **run["settings"]), stream())

    for step, expected in zip(steps, run["logits"], strict=True):
        given = step.prediction.logits / FACTORS[name]
        torch.testing.assert_close(given, torch.tensor(expected), **CLOSE)


@pytest.mark.parametrize("run", recording("lame")["runs"], ids=lambda run: run["name"])
def test_corrected_probabilities_are_those_of_the_authors_code(run):
    steps = answers(LAME(network(), **run["settings"]), stream())

    for step, expected in zip(steps, run["probabilities"], strict=True):
        given = step.prediction.logits.softmax(dim=1)
        torch.testing.assert_close(given, torch.tensor(expected), atol=1e-5, rtol=1e-4)


def test_deyo_keeps_the_same_samples():
    run = only_run("deyo")
    steps = answers(DeYO(network(), **run["settings"]), stream())

    counts = [[step.numbers["sure"], step.numbers["kept"]] for step in steps]
    assert counts == run["sure and kept"]


def test_rotta_remembers_the_same_samples():
    run = only_run("rotta")
    method = RoTTA(network(), **run["settings"])
    answers(method, stream())

    assert sorted(each.age for each in method.memory.kept) == run["ages"]


def test_single_samples_in_a_window_are_answered_as_by_the_authors_code():
    run = only_run("window")
    singles = [
        Batch(0, batch.samples[row : row + 1], batch.inputs[row : row + 1])
        for batch in stream()[:3]
        for row in range(len(batch))
    ]
    steps = answers(ROID(network(), **run["settings"]), singles)

    given = torch.cat([step.prediction.logits for step in steps])
    torch.testing.assert_close(given, torch.tensor(run["logits"]), **CLOSE)
