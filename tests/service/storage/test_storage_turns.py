import math

import pytest

from attakit.errors import StateError
from service_records import NOW, ask, question, say, served, turn


def test_a_turn_comes_back_as_it_was_planned(storage):
    storage.samples.add(served("a", "b"))
    planned = turn(0, "a", "b", audit=("b",), settled=(), forgotten=())
    storage.turns.plan(planned)

    assert storage.turns.after(-1) == (planned,)
    assert storage.turns.after(0) == ()


def test_turns_are_numbered_from_zero(storage):
    assert storage.turns.last() == -1
    for number in range(3):
        storage.turns.plan(turn(number))

    assert storage.turns.last() == 2
    assert [one.number for one in storage.turns.after(0)] == [1, 2]


def test_planning_marks_what_a_turn_takes(storage, clock):
    ask(storage, "a", "b")
    say(storage, 1, "Ada", 3)
    clock.sleep(5)
    storage.questions.settle()
    storage.turns.plan(turn(0, "a", settled=(1,)))

    assert storage.samples.untaken_names() == ("b",)
    assert storage.questions.settled() == ()


def test_what_a_turn_passes_over_waits_no_more_and_is_not_asked_about(storage):
    storage.samples.add(served("a", "b", "c", "later"))
    storage.turns.plan(turn(0, "b"), passed=("a", "c"))
    before = storage.samples.state("a")
    storage.turns.finish(0, {})

    assert storage.samples.untaken_names() == ("later",)
    assert storage.turns.after(-1) == (turn(0, "b"),)
    assert before == "undecided"
    assert [storage.samples.state(name) for name in "ac"] == ["not asked", "not asked"]


def test_what_was_passed_over_is_removed_once_the_turn_is_saved(storage):
    storage.samples.add(served("a", "b"))
    storage.turns.plan(turn(0, "b"), passed=("a",))

    assert storage.samples.clean(0, 30, 1, saved_turn=-1) == 0
    assert storage.samples.clean(0, 30, 1, saved_turn=0) == 2
    assert storage.samples.state("a") is None


def test_a_turn_that_is_refused_passes_nothing_over(storage):
    storage.samples.add(served("a", "b"))

    with pytest.raises(StateError, match="the next one is 0"):
        storage.turns.plan(turn(1, "a"), passed=("b",))

    assert storage.samples.untaken_names() == ("a", "b")


def test_planning_the_same_turn_twice_is_harmless(storage):
    storage.samples.add(served("a"))
    storage.turns.plan(turn(0, "a"))
    storage.turns.plan(turn(0, "a"))

    assert len(storage.turns.after(-1)) == 1


@pytest.mark.parametrize("number", [0, 2])
def test_a_turn_out_of_order_is_refused_and_takes_nothing(storage, number):
    storage.samples.add(served("a", "b"))
    storage.turns.plan(turn(0, "a"))

    with pytest.raises(StateError, match="the next one is 1"):
        storage.turns.plan(turn(number, "b"))

    assert storage.samples.untaken_count() == 1


def test_what_came_of_a_turn_is_kept_with_numbers_that_are_none(storage):
    storage.turns.plan(turn(0))
    storage.turns.plan(turn(1))
    storage.turns.finish(0, {"entropy": 0.5, "accuracy": math.nan})
    storage.turns.finish(0, {"entropy": 0.25, "accuracy": math.nan})

    (later, unfinished), (earlier, numbers) = storage.turns.recent(5)

    assert (later.number, unfinished, earlier.number) == (1, None, 0)
    assert earlier.at == NOW
    assert numbers["entropy"] == 0.25
    assert math.isnan(numbers["accuracy"])
    assert len(storage.turns.recent(1)) == 1


def test_a_turn_that_was_never_planned_cannot_be_finished(storage):
    with pytest.raises(StateError, match="was never planned"):
        storage.turns.finish(0, {})


def test_the_questions_of_a_turn_can_be_looked_up(storage):
    storage.samples.add(served("a", "b", "c"))
    storage.questions.put([question("b", turn=1), question("a", turn=1), question("c", turn=2)])

    assert [one.sample for one in storage.questions.of_turn(1)] == ["b", "a"]
    assert storage.questions.of_turn(7) == ()
