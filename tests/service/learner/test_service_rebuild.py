"""A learner whose checkpoint is lost comes back from the log of turns."""

import pytest

from attakit.errors import StateError
from attakit.nn import Classifier
from attakit.service.learner.leading import leading
from attakit.service.learner.memory import UnusableCheckpoint
from attakit.service.learner.rebuild import rebuild_memory
from states import same_state

TABLES = {
    "method": {"name": "anchor_head"},
    "labels": {"budget": 30, "audit_share": 0.3, "per_1000": 300, "first": 4},
    "learning": {"batch_size": 10, "checkpoint_every": 2},
}
ROUNDS = 6


@pytest.fixture
def service(miniature):
    """A service that has learned for some turns, and is stopped."""
    service = miniature(**TABLES)
    service.start()
    for number in range(ROUNDS):
        service.serve_batch(number)
        service.answer(lambda question: question.question % 3, limit=4)
        while service.learner.run_once():
            pass
    service.learner.save()
    return service


def rebuild(service, decode):
    return rebuild_memory(service.settings, service.storage, Classifier(service.model), decode)


def checkpoints(service):
    return sorted((service.settings.folder / "checkpoints").glob("turn-*"))


def asked(service):
    return [(one.question, one.sample, one.state) for one in service.storage.questions.recent(1000)]


@pytest.mark.parametrize("database_kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_from_a_complete_log_the_same_memory_comes_back(service, decode, harm):
    before, questions = service.learner.memory.state_dict(), asked(service)
    for file in checkpoints(service):
        file.unlink() if harm == "missing" else file.write_bytes(b"damaged")
    with pytest.raises(UnusableCheckpoint, match=r"attakit rebuild|damaged"):
        service.start()

    rebuilt = rebuild(service, decode)

    assert rebuilt.is_exact
    assert rebuilt.turns == service.storage.turns.last() + 1
    assert len(rebuilt.set_aside) == (harm == "damaged")
    assert same_state(service.start().memory.state_dict(), before)
    assert asked(service) == questions
    assert service.start().memory.turn == service.storage.turns.last()


def test_what_cannot_be_restored_is_counted_and_the_budget_stays_exact(service, decode):
    before, questions = service.learner.memory, asked(service)
    gone = service.storage.samples.clean(0, 30.0, 1000.0, before.turn, 0)
    for file in checkpoints(service):
        file.unlink()

    rebuilt = rebuild(service, decode)
    memory = service.start().memory

    assert 0 < rebuilt.lost_samples <= gone
    assert not rebuilt.is_exact
    assert memory.left == before.left
    assert asked(service) == questions


def test_a_checkpoint_that_was_there_is_kept_under_another_name(service, decode):
    (old,) = checkpoints(service)
    content = old.read_bytes()

    (name,) = rebuild(service, decode).set_aside

    assert (old.parent / name).read_bytes() == content


def test_while_a_learner_works_nothing_is_rebuilt(service, decode, monkeypatch):
    monkeypatch.setattr("attakit.service.learner.leading.LOCK_SECONDS", 0.1)
    other = service.open_storage()
    with leading(service.settings, other, lambda: False), pytest.raises(StateError, match="Stop"):
        rebuild(service, decode)
    other.close()
    assert checkpoints(service)
