"""Blobs: weights and checkpoints in a folder, in the database and in an object store."""

import uuid

import pytest

from attakit.errors import SettingError, StateError
from attakit.service.blobs import FolderBlobs, check_blobs, open_blobs
from attakit.service.object_store import ObjectStore
from attakit.service.storage import open_storage
from attakit.settings.service import ServiceSettings


def settings_of(folder, files, database=None):
    return ServiceSettings(folder=folder, files=files, database=database, classes=("a", "b"))


@pytest.fixture(params=["folder", "database", "object store"])
def blobs(request, tmp_path):
    files = {"folder": None, "database": "database", "object store": f"memory://{uuid.uuid4()}"}
    on_postgres = request.param == "database"
    url = request.getfixturevalue("postgres_url") if on_postgres else None
    with open_storage(tmp_path, url) as storage:
        yield open_blobs(settings_of(tmp_path, files[request.param], url), storage, "versions")


def write(blobs, name, content):
    with blobs.writing(name) as path:
        path.write_bytes(content)


def test_a_file_is_read_back_replaced_listed_and_removed(blobs):
    write(blobs, "turn-2", b"two")
    write(blobs, "turn-1", b"one")
    write(blobs, "turn-1", b"one again")
    write(blobs, "source", b"source")

    with blobs.reading("turn-1") as path:
        assert path.read_bytes() == b"one again"
    assert blobs.names("turn-*") == ["turn-1", "turn-2"]
    blobs.remove("turn-1")
    blobs.remove("turn-1")
    blobs.remove_drafts("turn-*")
    assert blobs.names() == ["source", "turn-2"]


def test_a_file_that_is_not_there_is_missing_where_it_would_be_read(blobs):
    assert blobs.names() == []
    with blobs.reading("turn-1") as path:
        assert not path.exists()


def test_a_file_whose_writing_fails_leaves_the_one_before_in_a_store():
    store = ObjectStore(f"memory://{uuid.uuid4()}")
    settings = settings_of("unused", store.place)
    blobs = open_blobs(settings, None, "versions")
    write(blobs, "turn-1", b"one")

    with pytest.raises(TypeError), blobs.writing("turn-1") as path:
        path.write_bytes("not bytes")

    assert store.get("versions/turn-1") == b"one"


def test_drafts_in_a_folder_are_removed_and_never_listed(tmp_path):
    (tmp_path / ".turn-1.safetensors.abc.safetensors").touch()
    (tmp_path / ".other").touch()
    blobs = FolderBlobs(tmp_path)

    assert blobs.names() == []
    blobs.remove_drafts("turn-*")

    assert [path.name for path in tmp_path.iterdir()] == [".other"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ("database", "needs PostgreSQL, got a service on SQLite"),
        ("bucket/path", "a URL like s3://bucket/path, got 'bucket/path'"),
        ("nosuch://bucket", "nosuch"),
    ],
)
def test_a_place_that_cannot_hold_files_is_refused_before_anything_starts(tmp_path, files, words):
    with open_storage(tmp_path) as storage, pytest.raises(SettingError, match=words):
        check_blobs(settings_of(tmp_path, files), storage)


def test_an_object_store_that_fails_says_which_one_and_why(monkeypatch):
    store = ObjectStore("memory://broken-store")

    def fail(*_arguments, **_options):
        raise RuntimeError("no credentials")

    monkeypatch.setattr(store._system, "cat_file", fail, raising=True)

    with pytest.raises(StateError, match=r"memory://broken-store cannot .*no credentials"):
        store.get("a")
