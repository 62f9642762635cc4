import pytest
import torch

from attakit.errors import ModelError
from attakit.records import Rows
from attakit.select import HighestEntropy


def rows(**surplus):
    """Two-class logits: the smaller the surplus of one class, the less sure."""
    logits = torch.tensor([[value, 0.0] for value in surplus.values()]).reshape(-1, 2)
    return Rows(tuple(surplus), logits, logits, torch.ones(len(surplus)))


def test_the_least_sure_samples_come_first():
    candidates = rows(sure=9.0, lost=0.0, vague=-1.0)

    selection = HighestEntropy().select(candidates, rows(), limit=2, step=0)

    assert selection.samples == ("lost", "vague")
    assert selection.weights == {"lost": 1, "vague": 1}


def test_the_limit_holds_and_known_samples_are_left_out():
    candidates = rows(a=0.0, b=1.0, c=2.0)

    selection = HighestEntropy().select(candidates, rows(a=0.0), limit=1, step=0)

    assert selection.samples == ("b",)


def test_equally_sure_samples_keep_their_order():
    candidates = rows(a=1.0, b=1.0, c=1.0)

    assert HighestEntropy().select(candidates, rows(), 2, 0).samples == ("a", "b")


def test_logits_that_are_not_finite_are_refused():
    with pytest.raises(ModelError, match="HighestEntropy: logits must be finite"):
        HighestEntropy().select(rows(a=float("nan")), rows(), limit=1, step=0)
