"""The process of the learner: manners, signals, locks and clearing up."""

import os
import signal

import pytest

from attakit.errors import StateError, UnwritableFile
from attakit.nn.classifier import Classifier
from attakit.service.learner import candidates, leading, process
from attakit.service.learner.process import run_learner
from attakit.service.lock import exclusive_lock
from attakit.service.saved_settings import open_service
from attakit.service.supervisor import GAVE_UP
from attakit.settings.service import ServiceSettings
from miniature_service import wait_until


@pytest.fixture
def quick(monkeypatch):
    """Neither priority nor threads of the process that tests run in are changed."""
    monkeypatch.setattr(process, "limit_cpu", lambda settings: None)
    monkeypatch.setattr(process, "POLL_SECONDS", 0.01)


@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"])
def test_the_loop_takes_turns_until_it_is_stopped(miniature, quick):
    service = miniature()
    service.serve_batch(0)
    with service.learning():
        wait_until(lambda: service.storage.turns.last() == 0)

    with open_service(service.settings) as storage:
        assert storage.key_values.get("saved_turn") == 0
        assert storage.versions.current().version == 0


def test_sigterm_ends_the_loop_after_the_turn(miniature, quick, decode, monkeypatch):
    service = miniature()
    service.serve_batch(0)
    real = process.LiveLearner.run_once

    def run_once(learner):
        os.kill(os.getpid(), signal.SIGTERM)
        return real(learner)

    monkeypatch.setattr(process.LiveLearner, "run_once", run_once)
    before = signal.getsignal(signal.SIGTERM)

    run_learner(service.settings, Classifier(service.model), decode)

    assert service.storage.turns.recent(1)[0][1] is not None
    assert service.storage.key_values.get("saved_turn") == 0
    assert signal.getsignal(signal.SIGTERM) == before


def test_without_its_parent_the_learner_ends(miniature, quick, decode):
    service = miniature()

    run_learner(service.settings, Classifier(service.model), decode, parent=os.getppid() + 1)

    assert service.storage.turns.last() == -1


def test_two_learners_do_not_work_on_one_folder(miniature, quick, decode, monkeypatch):
    monkeypatch.setattr(leading, "LOCK_SECONDS", 0.0)
    service = miniature()

    with (
        exclusive_lock(service.settings.folder / leading.LOCK_FILE),
        pytest.raises(StateError, match="The learner: another learner is using"),
    ):
        run_learner(service.settings, Classifier(service.model), decode)


def test_contents_beyond_the_limits_are_removed_once_they_are_in_a_checkpoint(miniature):
    service = miniature(retention={"images": 5}, labels={"budget": 0})
    learner = service.start()
    names = []
    for number in range(2):
        names += service.serve_batch(number)
        learner.run_once()
    assert learner.clean() == 0

    learner.save()

    assert learner.clean() == 15
    assert list(service.storage.samples.contents(names)) == names[15:]


def test_contents_beyond_the_limits_are_removed_also_of_what_waits(miniature):
    service = miniature(retention={"images": 20}, labels={"budget": 0})
    learner = service.start()
    for number in range(4):
        service.serve_batch(number)
        learner.run_once()
    waiting = service.serve_batch(9, size=30)
    learner.save()

    removed = learner.clean()

    assert removed == 50
    assert service.storage.samples.untaken_names() == tuple(waiting[10:])
    assert len(service.storage.samples.contents(waiting)) == 20
    assert service.storage.samples.state(waiting[0]) is None


def test_a_checkpoint_that_is_missing_is_named(miniature):
    service = miniature()
    learner = service.start()
    service.serve_batch(0)
    learner.run_once()
    learner.save()
    for path in (service.settings.folder / "checkpoints").iterdir():
        path.unlink()

    with pytest.raises(StateError, match="checkpoint after turn 0 is missing"):
        service.start()


def learning(lr):
    trainer = {"max_updates": 3, "lr": lr}
    return {"name": "simatta", "high_entropy_bound": 0.0, "trainer": trainer}


def make_labels(service):
    """Bring a service to the moment before it learns from people."""
    service.serve_batch(0)
    service.start().run_once()
    service.answer(lambda question: 1)


def start_until_it_gives_up(service, decode):
    with pytest.raises(SystemExit) as ended:
        run_learner(service.settings, Classifier(service.model), decode)
    return ended.value.code


def test_a_learner_whose_training_diverges_gives_up_with_an_alarm(miniature, quick, decode, caplog):
    service = miniature(method=learning(lr=1e30))
    make_labels(service)

    code = start_until_it_gives_up(service, decode)

    (alarm,) = service.storage.events.recent(5, kind="alarm")
    assert code == GAVE_UP
    assert "Learning has stopped. The log says why" in alarm.details["text"]
    assert "the loss became nan" in caplog.text
    assert service.storage.versions.current().version == 0


def test_a_learner_whose_checkpoint_does_not_fit_gives_up_with_an_alarm(
    miniature, quick, decode, caplog
):
    service = miniature(method=learning(lr=1e-3))
    make_labels(service)
    service.start().save()
    (checkpoint,) = (service.settings.folder / "checkpoints").glob("turn-*")
    checkpoint.unlink()

    code = start_until_it_gives_up(service, decode)

    assert code == GAVE_UP
    assert len(service.storage.events.recent(5, kind="alarm")) == 1
    assert "is missing" in caplog.text


def test_a_learner_on_a_full_disk_ends_and_takes_the_same_turn_when_it_starts_again(
    miniature, quick, decode, monkeypatch
):
    service = miniature(method=learning(lr=1e-3))
    make_labels(service)

    def full(*_arguments, **_settings):
        raise UnwritableFile("No space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr(candidates, "save_weights", full)
        with pytest.raises(UnwritableFile):
            run_learner(service.settings, Classifier(service.model), decode)
    assert service.storage.events.recent(5, kind="alarm") == ()

    with service.learning():
        wait_until(lambda: len(service.storage.versions.all()) > 1)


def test_a_learner_that_gave_up_continues_once_its_settings_are_fixed(miniature, quick, decode):
    service = miniature(method=learning(lr=1e30))
    make_labels(service)
    start_until_it_gives_up(service, decode)

    mended = service.settings.model_dump() | {"method": learning(lr=1e-3)}
    service.settings = ServiceSettings(**mended)
    learner = service.start()

    assert learner.memory.ledger.received > 0
    weights = learner.memory.method.adapted_model.parameters()
    assert all(each.isfinite().all() for each in weights)
