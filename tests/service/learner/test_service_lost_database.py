"""A database that is lost is noticed, and what was learned stays on disk."""

import shutil

import pytest

from attakit.errors import StateError
from attakit.nn import Classifier
from attakit.service.checks import check_compatible
from attakit.service.learner.rebuild import rebuild_memory
from attakit.service.saved_settings import save_settings


@pytest.fixture
def learned(miniature):
    """A service with versions and a checkpoint."""
    service = miniature(learning={"batch_size": 10, "checkpoint_every": 1})
    service.start()
    for number in range(3):
        service.serve_batch(number)
        service.learner.run_once()
        service.answer(lambda question: question.question % 3)
    service.learner.run_once()
    assert len(service.storage.versions.all()) > 1
    return service


def lose_database(service):
    service.storage.close()
    for path in service.settings.folder.glob("service.sqlite*"):
        path.unlink()
    service.storage = service.open_storage()


def files(service):
    return {path.name for path in service.settings.folder.glob("*/*")}


def test_a_learner_does_not_begin_again_on_an_empty_database(learned):
    before = files(learned)
    lose_database(learned)

    with pytest.raises(StateError, match=r"the database is empty\. The right database was lost"):
        learned.start()

    assert files(learned) == before


def test_a_service_does_not_start_on_an_empty_database(learned):
    check_compatible(learned.settings, learned.storage)
    lose_database(learned)

    with pytest.raises(StateError, match="Restore it, or use another folder"):
        check_compatible(learned.settings, learned.storage)


def test_a_service_without_versions_does_not_start_on_an_empty_database_either(miniature):
    service = miniature()
    check_compatible(service.settings, service.storage)
    save_settings(service.settings)
    lose_database(service)

    with pytest.raises(StateError, match="it is not in the database"):
        check_compatible(service.settings, service.storage)


def test_a_first_start_that_was_killed_can_be_repeated(miniature):
    service = miniature()
    check_compatible(service.settings, service.storage)  # killed before the settings were saved
    lose_database(service)

    check_compatible(service.settings, service.storage)


def test_a_service_does_not_start_on_a_database_that_is_older_than_its_checkpoint(
    miniature, decode
):
    service = miniature(learning={"batch_size": 10, "checkpoint_every": 1})
    file = service.settings.folder / "service.sqlite"
    service.start()
    for number in range(2):
        service.serve_batch(number)
        service.learner.run_once()
        service.storage.close()
        shutil.copy(file, file.with_name(f"backup-{number}"))
        service.storage = service.open_storage()
        check_compatible(service.settings, service.storage)
        service.start()
    service.storage.close()
    shutil.copy(file.with_name("backup-0"), file)
    service.storage = service.open_storage()

    with pytest.raises(StateError, match=r"ends with turn 0\. Restore .* `attakit rebuild`"):
        check_compatible(service.settings, service.storage)

    rebuild_memory(service.settings, service.storage, Classifier(service.model), decode)
    check_compatible(service.settings, service.storage)
    assert service.start().memory.turn == 0


def test_a_checkpoint_of_a_later_turn_than_the_log_has_is_refused(learned):
    for path in (learned.settings.folder / "versions").glob("turn-*"):
        path.unlink()
    lose_database(learned)

    with pytest.raises(StateError, match="the log in the database ends with turn -1"):
        learned.start()
