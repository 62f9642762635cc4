import pytest

from attakit.errors import SettingError
from attakit.select.pace import Pace


def test_without_a_limit_of_its_own_the_limit_given_counts():
    pace = Pace("Somebody", first="unlimited", per_step="unlimited")

    assert [pace.allowed(7, step) for step in range(3)] == [7, 7, 7]


def test_first_and_later_steps_are_unlimited_on_their_own():
    few_first = Pace("Somebody", first=2, per_step="unlimited")
    few_later = Pace("Somebody", first="unlimited", per_step=2)

    assert [few_first.allowed(7, step) for step in range(2)] == [2, 7]
    assert [few_later.allowed(7, step) for step in range(2)] == [7, 2]


def test_a_negative_limit_allows_nothing():
    assert Pace("Somebody", first="unlimited", per_step=1).allowed(-1, 0) == 0


@pytest.mark.parametrize("settings", [{"first": "many"}, {"per_step": "many"}, {"per_step": -1}])
def test_other_words_and_negative_numbers_are_refused(settings):
    with pytest.raises(SettingError, match="Somebody"):
        Pace("Somebody", **{"first": 1, "per_step": 1, **settings})
