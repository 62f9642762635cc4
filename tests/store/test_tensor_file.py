import json
import math
import os
import pickle

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from safetensors.torch import save_file

from attakit.errors import StateError
from attakit.store.tensor_file import load_state, save_state

TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]

tensors = some.builds(
    lambda shape, kind: torch.arange(math.prod(shape)).reshape(shape).to(kind),
    some.lists(some.integers(0, 3), max_size=4),
    some.sampled_from(TYPES),
)
leaves = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(),
    some.floats(allow_nan=False),
    some.text(),
    tensors,
)
values = some.recursive(
    leaves,
    lambda inner: some.one_of(
        some.lists(inner, max_size=3),
        some.tuples(inner, inner),
        some.dictionaries(some.one_of(some.text(), some.integers()), inner, max_size=3),
    ),
    max_leaves=10,
)


def same(first, second):
    if type(first) is not type(second):
        return False
    if isinstance(first, torch.Tensor):
        alike = first.dtype == second.dtype and first.stride() == second.stride()
        return alike and torch.equal(first, second)
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


@given(state=some.dictionaries(some.text(), values, max_size=4))
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_any_state_comes_back_as_it_was(state, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "state.safetensors"

    save_state(path, state)

    assert same(load_state(path), state)


def test_not_a_number_and_infinity_come_back(tmp_path):
    save_state(tmp_path / "a.safetensors", {"bound": math.inf, "loss": math.nan})

    state = load_state(tmp_path / "a.safetensors")

    assert state["bound"] == math.inf
    assert math.isnan(state["loss"])


def test_tensors_that_share_memory_and_images_in_another_order_come_back(tmp_path):
    weight = torch.rand(2, 3)
    images = torch.rand(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    state = {"one": weight, "other": weight, "part": weight[:, 1], "images": images}

    save_state(tmp_path / "a.safetensors", state)

    found = load_state(tmp_path / "a.safetensors")
    assert all(torch.equal(found[name], state[name]) for name in state)
    assert found["images"].stride() == images.stride()


def test_images_of_one_channel_keep_their_order_in_memory(tmp_path):
    images = torch.rand(2, 1, 4, 4).clone(memory_format=torch.channels_last)

    save_state(tmp_path / "a.safetensors", {"images": images, "expanded": torch.ones(1).expand(3)})

    found = load_state(tmp_path / "a.safetensors")
    assert found["images"].stride() == images.stride() != torch.rand(2, 1, 4, 4).stride()
    assert torch.equal(found["images"], images)
    assert torch.equal(found["expanded"], torch.ones(3))


def test_a_state_of_format_1_is_read(tmp_path):
    images = torch.rand(2, 3, 4, 4)
    tensor = {"tensor": "0", "channels_last": True}
    header = {"format": "attakit state 1", "state": json.dumps({"pairs": [["images", tensor]]})}
    save_file({"0": images}, tmp_path / "a.safetensors", metadata=header)

    found = load_state(tmp_path / "a.safetensors")["images"]

    assert torch.equal(found, images)
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_the_state_of_an_optimiser_can_be_loaded_back(tmp_path):
    layer = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()

    save_state(tmp_path / "a.safetensors", optimizer.state_dict())

    fresh = torch.optim.Adam(layer.parameters())
    fresh.load_state_dict(load_state(tmp_path / "a.safetensors"))
    assert same(fresh.state_dict(), optimizer.state_dict())


@pytest.mark.parametrize("value", [{1, 2}, object(), {"key": {(1,): 2}}, b"bytes"])
def test_what_cannot_be_saved_is_named_and_the_old_file_stays(tmp_path, value):
    path = tmp_path / "a.safetensors"
    save_state(path, {"turn": 1})

    with pytest.raises(StateError, match="got"):
        save_state(path, {"value": value})

    assert load_state(path) == {"turn": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_keeps_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    save_state(path, {"turn": 1})

    def fail(handle):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StateError, match=r"cannot be saved in .*\(No space left"):
        save_state(path, {"turn": 2})

    assert load_state(path) == {"turn": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StateError, match=r"no saved state at .*a\.safetensors"):
        load_state(tmp_path / "a.safetensors")


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9])
def test_a_cut_off_file_is_refused(tmp_path, share):
    path = tmp_path / "a.safetensors"
    save_state(path, {"weights": torch.rand(100)})
    os.truncate(path, int(path.stat().st_size * share))

    with pytest.raises(StateError, match="not a saved state, or it is damaged"):
        load_state(path)


@pytest.mark.parametrize("content", [b"hello", b"\x80\x04]q\x00.", b"{}", b"PK\x03\x04"])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "a.safetensors").write_bytes(content)

    with pytest.raises(StateError, match=r"a\.safetensors is not a saved state"):
        load_state(tmp_path / "a.safetensors")


class Trap:
    def __reduce__(self):
        return os.mkdir, ("sprung",)


@pytest.mark.parametrize("write", [torch.save, pickle.dump])
def test_a_file_never_runs_code(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "a.safetensors").open("wb") as file:
        write({"format": "attakit state 1", "trap": Trap()}, file)

    with pytest.raises(StateError):
        load_state(tmp_path / "a.safetensors")

    assert not (tmp_path / "sprung").exists()


def test_a_place_that_cannot_hold_a_file_is_named(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(StateError, match="cannot be saved in"):
        save_state(tmp_path / "file" / "a.safetensors", {"step": 1})


def test_a_file_of_weights_alone_is_no_state(tmp_path):
    save_file({"weight": torch.zeros(1)}, tmp_path / "a.safetensors")

    with pytest.raises(StateError, match="written as 'something else'"):
        load_state(tmp_path / "a.safetensors")


@pytest.mark.parametrize("told", ["{", json.dumps({"tensor": "9"}), json.dumps([1]), "3"])
def test_a_header_that_makes_no_sense_is_refused(tmp_path, told):
    header = {"format": "attakit state 1", "state": told}
    save_file({"weight": torch.zeros(1)}, tmp_path / "a.safetensors", metadata=header)

    with pytest.raises(StateError, match="damaged"):
        load_state(tmp_path / "a.safetensors")
