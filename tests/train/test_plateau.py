import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import SettingError
from attakit.methods.reference import ReferencePlateau
from attakit.train.plateau import Plateau


def updates_until_stop(plateau: Plateau, losses) -> int:
    for number, loss in enumerate(losses, start=1):
        if plateau.is_reached(loss):
            return number
    raise AssertionError("the losses ran out before the plateau was reached")


def test_constant_loss_stops_after_first_window_and_patience():
    plateau = Plateau(window=5, patience=2)

    assert updates_until_stop(plateau, itertools.repeat(1.0)) == 15


def test_public_rule_takes_at_least_42_updates():
    plateau = ReferencePlateau(window=5, patience=6)

    assert updates_until_stop(plateau, itertools.repeat(1.0)) == 42


def test_loss_after_each_window_is_thrown_away_in_the_public_rule():
    # Windows [2, 2] and [1, 1]; the nines in between would hide the improvement.
    losses = [2, 2, 9, 1, 1, 9, 1, 1, 9]

    assert updates_until_stop(ReferencePlateau(window=2, patience=1), losses) == 9
    assert updates_until_stop(Plateau(window=3, patience=1), losses) == 9
    assert updates_until_stop(Plateau(window=2, patience=1), [2, 2, 9, 1]) == 4


def test_improvement_resets_patience():
    losses = [3, 3, 4, 4, 2, 2, 5, 5, 5, 5]

    assert updates_until_stop(Plateau(window=2, patience=2), losses) == 10


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=40))
def test_strictly_falling_window_means_never_stop(steps):
    plateau, loss = Plateau(window=1, patience=1), 1000.0
    for step in steps:
        loss -= step
        assert not plateau.is_reached(loss)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "Plateau: window must be at least 1, got 0."),
        ({"patience": 0}, "Plateau: patience must be at least 1, got 0."),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        Plateau(**settings)
