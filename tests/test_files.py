import os

import pytest

from attakit.files import atomic_write


def test_a_block_that_fails_keeps_the_old_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half():
        with atomic_write(path) as draft:
            draft.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_folder_is_made_and_nobody_sees_the_file_before_it_is_whole(tmp_path):
    path = tmp_path / "new" / "a.png"

    with atomic_write(path) as draft:
        draft.write_text("whole")
        assert not path.exists()
        assert draft.suffix == ".png"
        assert draft.name.startswith(".")

    assert path.read_text() == "whole"


@pytest.mark.parametrize(("sync", "synced"), [(True, 2), (False, 0)])
def test_file_and_folder_are_on_disk_where_that_matters(tmp_path, monkeypatch, sync, synced):
    handles = []
    monkeypatch.setattr(os, "fsync", handles.append)

    with atomic_write(tmp_path / "a.txt", sync=sync) as draft:
        draft.write_text("safe")

    assert len(handles) == synced
