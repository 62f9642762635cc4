import os
import pickle

import pytest
import torch

from attakit.errors import StateError
from attakit.store.snapshot import FORMAT, load_snapshot, save_snapshot

STATE = {"step": 3, "method": {"weights": torch.arange(4.0), "names": ["a", "b"], "none": None}}


def test_a_state_comes_back_as_it_was_saved(tmp_path):
    path = tmp_path / "deep" / "snapshot.pt"
    save_snapshot(path, STATE)
    loaded = load_snapshot(path)
    assert loaded.keys() == STATE.keys()
    assert torch.equal(loaded["method"].pop("weights"), torch.arange(4.0))
    assert loaded == {"step": 3, "method": {"names": ["a", "b"], "none": None}}


def test_saving_again_replaces_the_file_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "snapshot.pt"
    save_snapshot(path, {"step": 1})
    save_snapshot(path, {"step": 2})
    assert load_snapshot(path) == {"step": 2}
    assert list(tmp_path.iterdir()) == [path]


def test_a_save_that_fails_keeps_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "snapshot.pt"
    save_snapshot(path, {"step": 1})

    def fail(state, file):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(StateError, match=r"cannot be saved in .*snapshot\.pt \(No space"):
        save_snapshot(path, {"step": 2})
    assert load_snapshot(path) == {"step": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StateError, match=r"no saved run at .*snapshot\.pt.*without --resume"):
        load_snapshot(tmp_path / "snapshot.pt")


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9])
def test_a_cut_off_file_is_named(tmp_path, share):
    path = tmp_path / "snapshot.pt"
    save_snapshot(path, STATE)
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(StateError, match="not a saved run, or it is damaged"):
        load_snapshot(path)


@pytest.mark.parametrize("content", [b"hello", b"\x80\x04]q\x00.", b"{}", b"PK\x03\x04"])
def test_a_foreign_file_is_named(tmp_path, content):
    path = tmp_path / "snapshot.pt"
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"snapshot\.pt"):
        load_snapshot(path)


class Trap:
    def __reduce__(self):
        return os.mkdir, ("sprung",)


@pytest.mark.parametrize("write", [torch.save, pickle.dump])
def test_a_file_never_runs_code(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "snapshot.pt").open("wb") as file:
        write({"format": FORMAT, "trap": Trap()}, file)
    with pytest.raises(StateError):
        load_snapshot(tmp_path / "snapshot.pt")
    assert not (tmp_path / "sprung").exists()


def test_another_format_is_refused(tmp_path):
    torch.save({"format": FORMAT + 1}, tmp_path / "snapshot.pt")
    with pytest.raises(
        StateError, match=f"format {FORMAT + 1}; this version reads format {FORMAT}"
    ):
        load_snapshot(tmp_path / "snapshot.pt")


def test_a_file_of_something_else_is_refused(tmp_path):
    torch.save([1, 2], tmp_path / "snapshot.pt")
    with pytest.raises(StateError, match="format None"):
        load_snapshot(tmp_path / "snapshot.pt")


def test_a_place_that_cannot_hold_a_file_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="cannot be saved in"):
        save_snapshot(tmp_path / "file" / "snapshot.pt", {"step": 1})
