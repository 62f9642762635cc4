"""BiTTA, EATTA and HILTTA ask and answer as their authors' code did. See reference/README.md."""

import pytest
import torch

from attakit.methods import EATTA, HILTTA, BiTTA, Tent
from attakit.queries import Allowance, Answer
from attakit.select import LabelRate
from recorded_runs import labelled_stream, network, recording


def runs_of(name):
    return pytest.mark.parametrize("run", recording(name)["runs"], ids=lambda run: run["name"])


def rate(run):
    return LabelRate(per_batch=run["asked per batch"], first=0, at_drift=0)


def turns(method, run):
    """Check questions and answers batch by batch, and yield those of the truth to give."""
    batches, labels = labelled_stream(len(run["logits"]), 12, seed=run["stream"])
    for at, batch in enumerate(batches):
        step = method.step(batch, Allowance(99))
        expected = torch.tensor(run["logits"][at])
        torch.testing.assert_close(step.prediction.logits, expected, atol=5e-4, rtol=1e-4)
        asked = sorted(int(query.sample.rpartition("-")[2]) for query in step.queries)
        assert asked == run["asked"][at]
        yield at, [(query, labels[query.sample]) for query in step.queries]


@runs_of("bitta")
def test_bitta(run):
    if run["name"] == "with dropout" and not torch.backends.mkl.is_available():
        pytest.skip("this build of torch draws other random numbers")
    method = BiTTA(network(), rate=rate(run), **run["settings"])
    for at, truth in turns(method, run):
        answers = [
            Answer.yes(query, "truth") if query.proposed == label else Answer.no(query, "truth")
            for query, label in truth
        ]
        method.learn(answers)
        assert len(method.right) == run["right"][at]


@runs_of("eatta")
def test_eatta(run):
    method = EATTA(network(), **run["settings"])
    for at, truth in turns(method, run):
        method.learn([Answer(query, label, "truth") for query, label in truth])
        assert method.balance == pytest.approx(run["balance"][at], abs=1e-3)


@runs_of("hiltta")
def test_hiltta(run):
    model = network()
    method = HILTTA(
        model,
        method=Tent(model, lr=0.01),
        candidates={"lr": run["rates"]},
        labelled_lr=run["labelled_lr"],
        rate=rate(run),
    )
    for at, truth in turns(method, run):
        trained = method.learn([Answer(query, label, "truth") for query, label in truth])
        assert trained.numbers["candidate"] == run["best"][at]
        # Losses that lie close together are spread over 0 to 1, and so are their last digits.
        assert method.scores == pytest.approx(run["scores"][at], abs=5e-3)
