"""The learner is a function of its log: stopped anywhere, it comes back to the same state."""

import random

import pytest

from attakit.service.learner import memory, turns
from attakit.service.learner.gate import Gatekeeper
from attakit.service.storage.turns import TurnStore
from attakit.service.storage.versions import VersionStore
from miniature_service import METHOD
from states import same_state

ROUNDS = 9
CHANCE = 0.02  # of a crash, before and after each of the places below


class Crash(Exception):
    """As a SIGKILL would, but in this process."""


def people(question):
    """Answers that depend on the question alone; some are skipped."""
    return None if question.question % 5 == 0 else question.question % 3


def play(service, round_number):
    """What happens in the world between two turns."""
    if round_number % 4 != 3:  # sometimes only answers come
        service.serve_batch(round_number, shift=0 if round_number < 4 else 5)
    service.answer(people, limit=4)


def settings():
    return {
        "labels": {"budget": 30, "audit_share": 0.3, "per_class": 12},
        "learning": {"batch_size": 10, "checkpoint_every": 3},
        "gate": {"audit_needed": 2, "trust": 0.0, "audit_margin": 1.0},
        "drift": {"delta": 0.9, "boost_turns": 2},
        "method": METHOD,  # at the pace of [labels]
        "seed": 3,
    }


def world(service):
    """All that people can see of the outcome, without times and events."""
    storage = service.storage
    asked = [
        (one.sample, one.turn, one.purpose, one.label, one.guesses)
        for one in storage.questions.recent(1000)
    ]
    versions = [(one.number, one.turn, one.weights, one.labels) for one in storage.versions.all()]
    alarms = [one.details for one in storage.events.recent(1000, kind="alarm")]
    return asked, versions, storage.versions.current().version, alarms


@pytest.fixture(scope="module")
def unbroken(shared_miniature):
    service = shared_miniature("unbroken", **settings())
    service.start()
    for number in range(ROUNDS):
        play(service, number)
        while service.learner.run_once():
            pass
    return service


def test_the_run_that_is_compared_with_does_something(unbroken):
    memory = unbroken.learner.memory

    assert memory.turn == ROUNDS - 1
    assert memory.boosted_until > 0
    assert memory.asked_learn > 0
    assert memory.asked_audit > 0
    assert memory.ledger.refunded > 0
    assert memory.version > 0
    assert len(unbroken.storage.versions.promotions(100)) > 1


@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"])
def test_stopped_after_every_turn_it_comes_to_the_same_state(miniature, unbroken):
    service = miniature("stopped", **settings())
    for number in range(ROUNDS):
        play(service, number)
        while service.start().run_once():
            pass

    assert same_state(service.learner.memory.state_dict(), unbroken.learner.memory.state_dict())
    assert world(service) == world(unbroken)


PLACES = [
    (turns, "answer"),
    (turns, "learn"),
    (turns.TurnTaker, "_settle"),
    (turns.TurnTaker, "_make_candidate"),
    (turns.TurnTaker, "_account"),
    (turns.People, "ask"),
    (turns.People, "collect"),
    (turns.VersionFiles, "write"),
    (memory, "save_state"),
    (TurnStore, "plan"),
    (TurnStore, "finish"),
    (Gatekeeper, "_judge"),
    (VersionStore, "gate"),
    (VersionStore, "pass_gate"),
]


def crash_around(monkeypatch, place, name, draw):
    """Let a function fail, before or after it has done its work, at some of its calls."""
    real = getattr(place, name)

    def fragile(*arguments, **named):
        if draw.random() < CHANCE:
            raise Crash
        result = real(*arguments, **named)
        if draw.random() < CHANCE:
            raise Crash
        return result

    monkeypatch.setattr(place, name, fragile)


@pytest.mark.parametrize(
    ("database_kind", "seed"), [("sqlite", 0), ("sqlite", 1), ("sqlite", 2), ("postgres", 0)]
)
def test_stopped_inside_turns_it_comes_to_the_same_state(miniature, unbroken, monkeypatch, seed):
    draw = random.Random(seed)
    for place, name in PLACES:
        crash_around(monkeypatch, place, name, draw)
    service = miniature("stopped", **settings())
    crashes = 0

    for number in range(ROUNDS):
        play(service, number)
        done = False
        while not done:
            try:
                if service.learner is None:
                    service.start()
                done = not service.learner.run_once()
            except Crash:
                service.learner = None
                crashes += 1
    monkeypatch.undo()
    service.start()

    assert crashes >= 2
    assert same_state(service.learner.memory.state_dict(), unbroken.learner.memory.state_dict())
    assert world(service) == world(unbroken)


@pytest.mark.parametrize(
    "method",
    [
        {"name": "enhanced", "keep": True},
        {"name": "enhanced", "method": "eata"},
        {"name": "tent"},
    ],
)
def test_other_methods_come_back_too(miniature, method):
    tables = settings() | {"method": method}
    whole, stopped = miniature("whole", **tables), miniature("stopped", **tables)
    whole.start()
    for number in range(4):
        for service in (whole, stopped):
            play(service, number)
        while whole.learner.run_once():
            pass
        while stopped.start().run_once():
            pass

    assert same_state(stopped.learner.memory.state_dict(), whole.learner.memory.state_dict())
    assert world(stopped) == world(whole)
    assert whole.learner.memory.version > 0


def test_what_a_killed_learner_left_behind_is_removed(miniature):
    service = miniature(**settings())
    service.start()
    service.serve_batch(0)
    service.learner.run_once()
    service.learner.save()
    folder = service.settings.folder / "checkpoints"
    (newest,) = folder.iterdir()
    (folder / "turn--00000001.safetensors").write_bytes(newest.read_bytes())
    (folder / ".turn-000000009.safetensors.0123abcd").write_bytes(b"half")

    service.start()

    assert list(folder.iterdir()) == [newest]
