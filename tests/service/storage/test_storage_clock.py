"""A clock that is set back holds nothing up."""

import pytest

from attakit.service.storage.clock import SteadyClock
from service_records import NOW, ask, say

HOURS = 7200


@pytest.fixture
def asked(open_database, clock):
    """A storage with two questions, one of them leased, one answered, and the clock set back."""
    storage = open_database(lease_seconds=60)
    ask(storage, *"ab")
    assert storage.questions.lease("Ada").question.sample == "a"
    say(storage, 2, "Bob", 1)
    clock.sleep(-HOURS)
    return storage


def test_answers_are_settled_although_the_clock_was_set_back(asked, clock):
    asked.questions.settle()
    clock.sleep(6)

    assert asked.questions.settle() == 1


def test_leases_end_although_the_clock_was_set_back(asked, clock):
    assert asked.questions.lease("Cleo") is None
    clock.sleep(61)

    assert asked.questions.lease("Cleo").question.sample == "a"


def test_the_same_holds_after_a_restart(asked, open_database, clock):
    asked.close()
    again = open_database(lease_seconds=60)
    again.questions.settle()
    clock.sleep(61)

    assert again.questions.settle() == 1
    assert again.questions.lease("Cleo").question.sample == "a"


def test_time_is_that_of_the_wall_again_once_it_has_caught_up():
    wall = [NOW]
    clock = SteadyClock(lambda: wall[0])
    seen = []
    for now in (NOW, NOW - 50, NOW - 40, NOW - 90, NOW - 80, NOW + 100):
        wall[0] = now
        seen.append(clock() - NOW)

    assert seen == [0, 0, 10, 10, 20, 100]
