import pytest
import torch

from attakit.errors import ModelError, SettingError
from attakit.records import Rows
from attakit.select import HighestEntropy


def rows(**surplus):
    """Two-class logits: the smaller the surplus of one class, the less sure."""
    logits = torch.tensor([[value, 0.0] for value in surplus.values()]).reshape(-1, 2)
    return Rows(tuple(surplus), logits, logits, torch.ones(len(surplus)))


def test_the_least_sure_samples_come_first():
    candidates = rows(sure=9.0, lost=0.0, vague=-1.0)

    selection = HighestEntropy(first=2).select(candidates, rows(), limit=10, step=0)

    assert selection.samples == ("lost", "vague")
    assert selection.weights == {"lost": 1, "vague": 1}


def test_later_steps_ask_for_fewer():
    candidates = rows(a=1.0, b=2.0, c=3.0, d=4.0)
    selector = HighestEntropy(first=3, per_step=2)

    counts = [len(selector.select(candidates, rows(), 10, step).samples) for step in range(3)]

    assert counts == [3, 2, 2]


@pytest.mark.parametrize(("per_step", "total"), [(0.5, 10), (0.3, 6), (1.5, 30), (0, 0)])
def test_fractions_add_up(per_step, total):
    names = {f"s{number}": float(number) for number in range(5)}
    selector = HighestEntropy(first=0, per_step=per_step)

    counts = [
        len(selector.select(rows(**names), rows(), 10, step).samples) for step in range(1, 21)
    ]

    assert sum(counts) == total
    assert max(counts) - min(counts) <= 1


def test_the_limit_holds_and_known_samples_are_left_out():
    candidates = rows(a=0.0, b=1.0, c=2.0)

    selection = HighestEntropy().select(candidates, rows(a=0.0), limit=1, step=0)

    assert selection.samples == ("b",)


def test_equally_sure_samples_keep_their_order():
    candidates = rows(a=1.0, b=1.0, c=1.0)

    assert HighestEntropy(first=2).select(candidates, rows(), 10, 0).samples == ("a", "b")


def test_logits_that_are_not_finite_are_refused():
    with pytest.raises(ModelError, match="HighestEntropy: logits must be finite"):
        HighestEntropy().select(rows(a=float("nan")), rows(), limit=1, step=0)


@pytest.mark.parametrize("wrong", [{"first": -1}, {"per_step": -0.5}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(SettingError, match=r"HighestEntropy: .* must be at least 0"):
        HighestEntropy(**wrong)
