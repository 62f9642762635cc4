"""More samples come than the learner can look at: it draws some, and passes the others over."""

import logging

import numpy as np
import pytest

from attakit.service.learner.turns import TurnTaker
from states import same_state

BACKLOG = {"batch_size": 10, "backlog": 25, "checkpoint_every": 100}


def test_what_waits_is_taken_in_order_up_to_the_backlog(miniature):
    service = miniature(learning=BACKLOG)
    learner = service.start()
    names = service.serve_batch(0, size=25)

    learner.run_once()

    (turn,) = service.storage.turns.after(-1)
    assert turn.samples == tuple(names[:10])
    assert service.storage.samples.untaken_names() == tuple(names[10:])


def test_beyond_the_backlog_a_batch_is_drawn_and_the_others_are_passed_over(miniature, caplog):
    service = miniature(learning=BACKLOG, labels={"budget": 100, "audit_share": 0.5})
    learner = service.start()
    names = service.serve_batch(0, size=60)

    with caplog.at_level(logging.WARNING):
        assert learner.run_once()

    assert not learner.run_once()
    (turn,) = service.storage.turns.after(-1)
    assert len(turn.samples) == 10
    assert list(turn.samples) == [name for name in names if name in turn.samples]
    assert turn.samples != tuple(names[:10])
    assert {one.sample for one in service.storage.questions.recent(100)} <= set(turn.samples)
    assert "50 samples are skipped" in caplog.text
    states = {service.storage.samples.state(name) for name in set(names) - set(turn.samples)}
    assert states == {"not asked"}


def test_a_backlog_smaller_than_a_batch_passes_nothing_over_that_fits(miniature):
    service = miniature(learning={**BACKLOG, "backlog": 5})
    learner = service.start()
    names = service.serve_batch(0, size=10)

    learner.run_once()

    assert service.storage.turns.after(-1)[0].samples == tuple(names)


def test_every_sample_that_waits_is_drawn_equally_often(miniature):
    service = miniature(learning={"batch_size": 2, "backlog": 9})
    learner = service.start()
    names = service.serve_batch(0, size=10)
    counts = np.zeros(10)
    for number in range(300):
        learner.memory.turn = number - 1
        for name in learner._planner.plan().turn.samples:
            counts[names.index(name)] += 1

    assert counts.sum() == 600
    assert ((counts - 60) ** 2 / 60).sum() < 16.92  # 95 % of chi-squared, 9 degrees


class Crash(Exception):
    """As a SIGKILL would, but in this process."""


def test_a_turn_that_passed_samples_over_is_replayed_exactly(miniature, monkeypatch):
    unbroken, broken = (miniature(name, learning=BACKLOG) for name in ("unbroken", "broken"))
    for service in (unbroken, broken):
        service.start()
        service.serve_batch(0, size=60)

    def crash(*_arguments):
        raise Crash

    unbroken.learner.run_once()
    with monkeypatch.context() as patch:
        patch.setattr(TurnTaker, "_settle", crash)
        with pytest.raises(Crash):
            broken.learner.run_once()
    more = [service.serve_batch(1, size=30) for service in (unbroken, broken)]
    broken.start()

    assert broken.storage.turns.after(-1) == unbroken.storage.turns.after(-1)
    assert broken.storage.samples.untaken_names() == tuple(more[1])
    assert same_state(broken.learner.memory.state_dict(), unbroken.learner.memory.state_dict())
