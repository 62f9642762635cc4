"""Who may read what a service keeps."""

import os

import pytest

from attakit.service.saved_settings import save_settings
from attakit.service.storage import open_storage
from attakit.settings.service import ServiceSettings

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems have no such modes")


@pytest.fixture(autouse=True)
def usual_umask():
    """With which new files can be read by everybody."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path):
    return path.stat().st_mode & 0o777


def test_only_its_own_user_may_enter_the_folder_of_a_service(tmp_path):
    folder = tmp_path / "services" / "live"

    open_storage(folder).close()

    assert mode(folder) == 0o700
    assert mode(folder.parent) == 0o755


def test_only_its_own_user_may_read_the_database_and_its_journals(tmp_path):
    with open_storage(tmp_path) as storage:
        storage.key_values.set("paused", True)

        modes = {file.name: mode(file) for file in tmp_path.iterdir()}

    names = {"service.sqlite", "service.sqlite-wal", "service.sqlite-shm"}
    assert modes == dict.fromkeys(names, 0o600)


def test_only_its_own_user_may_read_a_database_elsewhere(tmp_path):
    file = tmp_path / "other.sqlite"

    open_storage(tmp_path / "live", f"sqlite:///{file}").close()

    assert mode(file) == 0o600


def test_only_its_own_user_may_read_the_kept_settings(tmp_path):
    folder = tmp_path / "live"

    path = save_settings(ServiceSettings(folder=folder, classes=("cat", "dog")))

    assert (mode(folder), mode(path)) == (0o700, 0o600)


def test_what_was_there_before_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "service.sqlite").touch(0o640)

    open_storage(tmp_path).close()

    assert mode(tmp_path) == 0o755
    assert mode(tmp_path / "service.sqlite") == 0o640
