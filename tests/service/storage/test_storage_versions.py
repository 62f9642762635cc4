import pytest

from attakit.errors import StateError
from attakit.service.storage import Gate, Promotion, Version
from service_records import NOW


def version(number, turn=None):
    turn = number - 1 if turn is None else turn
    return Version(number, turn, f"{number}.safetensors", f"hash {number}", labels=5, at=NOW)


def test_versions_come_back_with_their_gates(storage):
    gate = Gate(False, "It is worse.", {"accuracy": 0.5}, NOW)
    storage.versions.add(version(0))
    storage.versions.add(version(1))
    storage.versions.gate(1, gate)

    without, gated = storage.versions.all()

    assert without == version(0)
    assert gated.gate == gate
    assert storage.versions.next_number() == 2


def test_the_version_of_a_turn_is_recorded_once(storage):
    assert storage.versions.next_number() == 0
    first = storage.versions.add(version(0, turn=7))
    again = storage.versions.add(version(1, turn=7))

    assert first == again == version(0, turn=7)
    assert len(storage.events.recent(9, kind="version")) == 1


def test_a_version_out_of_order_is_refused(storage):
    with pytest.raises(StateError, match="the next one is 0"):
        storage.versions.add(version(3))


def test_the_first_gate_stays(storage):
    storage.versions.add(version(0))
    storage.versions.gate(0, Gate(True, "Good."))
    storage.versions.gate(0, Gate(False, "Bad."))

    (found,) = storage.versions.all()
    assert found.gate == Gate(True, "Good.", {}, NOW)
    (event,) = storage.events.recent(9, kind="gate")
    assert event.details == {"version": 0, "passed": True, "reason": "Good."}


def test_the_newest_promotion_holds(storage, clock):
    assert storage.versions.current() is None
    for number in range(2):
        storage.versions.add(version(number))
        storage.versions.promote(number, "It is better.", "learner")
    clock.sleep(1)
    storage.versions.promote(0, "It looked wrong.", "Ada")

    assert storage.versions.current() == Promotion(3, 0, "It looked wrong.", "Ada", NOW + 1)
    assert [one.version for one in storage.versions.promotions(2)] == [0, 1]
    event = storage.events.recent(1, kind="promotion")[0]
    assert (event.who, event.details) == ("Ada", {"version": 0, "reason": "It looked wrong."})


def test_a_turn_that_is_taken_again_does_not_undo_a_roll_back(storage):
    for number in range(2):
        storage.versions.add(version(number))
    assert storage.versions.promote(1, "It is better.", "learner", key="turn 0") is True
    storage.versions.promote(0, "It looked wrong.", "Ada")

    assert storage.versions.promote(1, "It is better.", "learner", key="turn 0") is False
    assert storage.versions.current().version == 0


def test_a_version_that_passes_answers_at_once(storage):
    for number in range(2):
        storage.versions.add(version(number))
    storage.versions.promote(0, "It is the source model.", "learner")

    passed = storage.versions.pass_gate(1, Gate(True, "Good."), storage.versions.current())

    assert passed.passed
    assert storage.versions.current().version == 1
    assert storage.versions.all()[1].gate.passed


def test_a_version_that_passes_after_people_chose_another_is_held_back(storage):
    for number in range(2):
        storage.versions.add(version(number))
    storage.versions.promote(0, "It is the source model.", "learner")
    before = storage.versions.current()
    storage.versions.promote(0, "It shall stay.", "Ada")

    held = storage.versions.pass_gate(1, Gate(True, "Good.", {"accuracy": 0.9}), before)
    back = storage.versions.promote(1, "Rolled back.", "learner", after=before)

    assert (held.passed, back) == (False, False)
    assert storage.versions.current().who == "Ada"
    assert storage.versions.all()[1].gate.reason == (
        "Held back: Ada chose version 0 while this one was judged."
    )
    assert storage.versions.all()[1].gate.numbers == {"accuracy": 0.9}


@pytest.mark.parametrize("number", [1, -1, 10**30])
def test_a_version_that_was_never_saved_cannot_be_promoted_or_gated(storage, number):
    storage.versions.add(version(0))

    with pytest.raises(StateError, match="The newest is 0"):
        storage.versions.promote(number, "Why not?", "Ada")
    with pytest.raises(StateError, match="there is no version"):
        storage.versions.gate(number, Gate(True, "Good."))


def test_some_of_many_versions_are_found_without_the_others(storage):
    for number in range(4):
        storage.versions.add(version(number, turn=10 * number))
    storage.versions.gate(2, Gate(True, "Good."))

    assert [one.number for one in storage.versions.recent(2)] == [3, 2]
    assert storage.versions.recent(2)[1].gate.passed
    assert list(storage.versions.get([1, 9, 10**30])) == [1]
    assert storage.versions.of_turn(30) == version(3, turn=30)
    assert storage.versions.of_turn(31) is None
    assert [one.number for one in storage.versions.unjudged()] == [0, 1, 3]
