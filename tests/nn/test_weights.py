import os
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from attakit.errors import ModelError
from attakit.nn import Classifier, SmallCNN, load_weights, save_weights, seeded, weights_hash


def build(seed: int = 0, classes: int = 3) -> nn.Module:
    with seeded(seed, "test weights"):
        return nn.Sequential(
            nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, classes)
        ).eval()


@pytest.fixture
def source():
    return build(seed=1)


def same(one: nn.Module, other: nn.Module) -> bool:
    return weights_hash(one) == weights_hash(other)


def test_saved_weights_come_back_bit_for_bit(source, tmp_path):
    save_weights(source, tmp_path / "new folder" / "model.safetensors")
    model = build()
    assert load_weights(model, tmp_path / "new folder" / "model.safetensors") == ()
    assert same(model, source)


@pytest.mark.parametrize("ending", [".pt", ".pth", ".bin", ".ckpt"])
def test_torch_files_are_read(source, tmp_path, ending):
    torch.save(source.state_dict(), tmp_path / f"model{ending}")
    model = build()
    load_weights(model, tmp_path / f"model{ending}")
    assert same(model, source)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: {"epoch": 3, "state_dict": state},
        lambda state: {"model": state, "optimizer": {"lr": 0.1}},
        lambda state: {"model": {"state_dict": state}},
        lambda state: {f"module.{name}": value for name, value in state.items()},
        lambda state: {f"model.{name}": value for name, value in state.items()},
        lambda state: {f"module.model.{name}": value for name, value in state.items()},
        lambda state: {f"model.module.{name}": value for name, value in state.items()},
    ],
)
def test_nested_and_prefixed_states_are_understood(source, tmp_path, wrap):
    torch.save(wrap(source.state_dict()), tmp_path / "model.pt")
    model = build()
    load_weights(model, tmp_path / "model.pt")
    assert same(model, source)


def test_a_prefix_that_the_model_has_itself_stays(tmp_path):
    model = nn.ModuleDict({"model": nn.Linear(2, 2)})
    save_weights(model, tmp_path / "model.safetensors")
    assert load_weights(model, tmp_path / "model.safetensors") == ()


def test_weights_fit_with_and_without_a_classifier_around(source, tmp_path):
    save_weights(Classifier(source), tmp_path / "model.safetensors")
    plain, wrapped = build(), Classifier(build())
    load_weights(plain, tmp_path / "model.safetensors")
    load_weights(wrapped, tmp_path / "model.safetensors")
    assert same(plain, source)
    assert same(wrapped, source)


def test_half_precision_is_cast_to_the_type_of_the_model(source, tmp_path):
    halves = {
        name: value.half() if value.is_floating_point() else value
        for name, value in source.state_dict().items()
    }
    save_file(halves, tmp_path / "half.safetensors")
    model = build()
    load_weights(model, tmp_path / "half.safetensors")
    assert model[0].weight.dtype == torch.float32
    assert torch.equal(model[0].weight, source[0].weight.half().float())


def test_a_missing_batch_counter_does_not_matter(source, tmp_path):
    state = source.state_dict()
    del state["1.num_batches_tracked"]
    save_file(state, tmp_path / "model.safetensors")
    assert load_weights(build(), tmp_path / "model.safetensors") == ()


def test_a_new_head_may_be_missing_in_the_file(source, tmp_path):
    state = {name: value for name, value in source.state_dict().items() if name[0] != "3"}
    save_file(state, tmp_path / "body.safetensors")
    model = build()
    head = model[3].weight.clone()
    new = load_weights(model, tmp_path / "body.safetensors", allow_new_head=True)
    assert new == ("3.weight", "3.bias")
    assert torch.equal(model[3].weight, head)
    assert torch.equal(model[0].weight, source[0].weight)


def test_a_new_head_may_have_other_classes(source, tmp_path):
    save_weights(source, tmp_path / "model.safetensors")
    model = build(classes=9)
    new = load_weights(model, tmp_path / "model.safetensors", allow_new_head=True)
    assert new == ("3.weight", "3.bias")
    assert torch.equal(model[0].weight, source[0].weight)


def test_a_new_head_with_large_random_weights_is_scaled_to_the_usual_range(source, tmp_path):
    save_weights(source, tmp_path / "model.safetensors")
    model = build(classes=9)
    with torch.no_grad():
        model[3].weight.mul_(20)
    drawn = model[3].weight.clone()
    load_weights(model, tmp_path / "model.safetensors", allow_new_head=True)
    ratios = model[3].weight / drawn
    assert torch.allclose(ratios, ratios[0, 0].expand_as(ratios))
    assert torch.isclose(model[3].weight.abs().max(), torch.tensor(5**-0.5))


def test_a_head_that_fits_is_loaded_even_where_a_new_one_is_allowed(source, tmp_path):
    save_weights(source, tmp_path / "model.safetensors")
    model = build()
    assert load_weights(model, tmp_path / "model.safetensors", allow_new_head=True) == ()
    assert same(model, source)


def test_a_model_without_a_linear_layer_has_no_head_to_be_new(tmp_path):
    save_weights(nn.Conv1d(2, 3, 1), tmp_path / "model.safetensors")
    path = tmp_path / "model.safetensors"
    assert load_weights(nn.Conv1d(2, 3, 1), path, allow_new_head=True) == ()
    message = r"weight \(3, 2, 1\) instead of \(4, 2, 1\)"
    refused(nn.Conv1d(2, 4, 1), tmp_path / "model.safetensors", message, allow_new_head=True)


def refused(model: nn.Module, path, message: str, **settings) -> None:
    """Loading fails with this message and leaves the model as it was."""
    before = weights_hash(model)
    with pytest.raises(ModelError, match=message):
        load_weights(model, path, **settings)
    assert weights_hash(model) == before


def test_missing_and_unexpected_tensors_are_named(source, tmp_path):
    state = source.state_dict()
    state["4.weight"] = state.pop("0.weight")
    save_file(state, tmp_path / "model.safetensors")
    message = r"Missing in the file: 0\.weight\. Not in the model: 4\.weight\."
    refused(build(), tmp_path / "model.safetensors", message)
    refused(build(), tmp_path / "model.safetensors", message, allow_new_head=True)


def test_long_lists_of_names_are_cut(tmp_path):
    save_weights(build(), tmp_path / "model.safetensors")
    refused(SmallCNN(), tmp_path / "model.safetensors", r"block1\.0\.weight.* and \d+ more")


def test_other_shapes_are_named(source, tmp_path):
    save_weights(source, tmp_path / "model.safetensors")
    message = r"3\.weight \(3, 5\) instead of \(9, 5\).*allow_new_head=True"
    refused(build(classes=9), tmp_path / "model.safetensors", message)


def test_another_shape_below_the_head_is_refused(source, tmp_path):
    state = source.state_dict() | {"0.weight": torch.zeros(5, 7)}
    save_file(state, tmp_path / "model.safetensors")
    message = r"0\.weight \(5, 7\) instead of \(5, 4\)"
    refused(build(), tmp_path / "model.safetensors", message, allow_new_head=True)


def test_numbers_that_are_not_finite_are_refused(source, tmp_path):
    state = source.state_dict() | {"0.bias": torch.full((5,), torch.nan)}
    save_file(state, tmp_path / "model.safetensors")
    refused(build(), tmp_path / "model.safetensors", r"not finite, in 0\.bias")


def test_a_missing_file_is_refused(tmp_path):
    refused(build(), tmp_path / "nowhere.pt", "there is no file .*nowhere.pt")


def test_an_unknown_ending_is_refused(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    refused(build(), tmp_path / "model.onnx", r"ending of 'model.onnx'. Known.*\.safetensors")


@pytest.mark.parametrize("ending", [".safetensors", ".pt"])
@pytest.mark.parametrize("text", ["", "hello", "<html>404 Not Found</html>", "version https://git"])
def test_a_text_file_under_another_name_is_refused(tmp_path, ending, text):
    (tmp_path / f"model{ending}").write_text(text)
    refused(build(), tmp_path / f"model{ending}", "not a readable .* file .*may be truncated")


@pytest.mark.parametrize("ending", [".safetensors", ".pt"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(source, tmp_path, ending, share):
    path = tmp_path / f"model{ending}"
    if ending == ".pt":
        torch.save(source.state_dict(), path)
    else:
        save_weights(source, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(build(), path, "not a readable .* file .*may be truncated")


class Trap:
    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_runs_code_is_refused_and_does_not_run(tmp_path):
    torch.save({"0.weight": Trap(tmp_path / "sprung")}, tmp_path / "model.pt")
    refused(build(), tmp_path / "model.pt", "holds more than tensors.*could run foreign code")
    with (tmp_path / "model.pth").open("wb") as file:
        pickle.dump(Trap(tmp_path / "sprung"), file, protocol=2)
    refused(build(), tmp_path / "model.pth", "holds more than tensors|not a readable torch file")
    assert not (tmp_path / "sprung").exists()


def test_a_whole_pickled_model_is_refused_with_advice(source, tmp_path):
    torch.save(source, tmp_path / "model.pt")
    refused(
        build(), tmp_path / "model.pt", r"holds more than tensors.*save only model\.state_dict\(\)"
    )


@pytest.mark.parametrize("content", [[1, 2], {}, {"epoch": 3}, {"a": torch.ones(1), "epoch": 3}])
def test_a_file_without_a_state_dict_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "model.pt")
    refused(build(), tmp_path / "model.pt", r"holds no state dict.*Save model\.state_dict\(\)")


def test_tied_weights_are_saved_and_come_back(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    save_weights(model, tmp_path / "model.safetensors")
    twin = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    load_weights(twin, tmp_path / "model.safetensors")
    assert torch.equal(twin[1].weight, model[0].weight)


def test_channels_last_weights_are_saved_in_the_usual_order(tmp_path):
    model = SmallCNN().to(memory_format=torch.channels_last)
    save_weights(model, tmp_path / "model.safetensors")
    saved = load_file(tmp_path / "model.safetensors")["block2.0.weight"]
    assert saved.is_contiguous()
    assert torch.equal(saved, model.block2[0].weight)


def test_a_failed_save_leaves_the_old_file_and_nothing_else(source, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    save_weights(source, path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ModelError, match=r"model.safetensors cannot be written \(disk full\)"):
        save_weights(build(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_only_safetensors_are_written(source, tmp_path):
    with pytest.raises(ModelError, match=r"got the file name 'model.pt'. Give it the ending"):
        save_weights(source, tmp_path / "model.pt")


def test_the_hash_follows_values_names_and_shapes_but_not_order_or_layout():
    first, second = nn.Linear(2, 3), nn.Linear(3, 2)
    forward = nn.ModuleDict({"a": first, "b": second})
    backward = nn.ModuleDict({"b": second, "a": first})
    renamed = nn.ModuleDict({"a": first, "c": second})
    assert weights_hash(forward) == weights_hash(backward)
    assert weights_hash(forward) != weights_hash(renamed)
    cnn = SmallCNN()
    before = weights_hash(cnn)
    assert len(before) == 16
    assert weights_hash(cnn.to(memory_format=torch.channels_last)) == before
    cnn.head.bias.data[0] += 1
    assert weights_hash(cnn) != before
    flat, tall = nn.Linear(6, 1, bias=False), nn.Linear(1, 6, bias=False)
    tall.weight.data = flat.weight.data.reshape(6, 1)
    assert weights_hash(flat) != weights_hash(tall)


def test_the_hash_of_small_floats_and_scalars_works():
    layer = nn.Linear(2, 2).bfloat16()
    layer.register_buffer("count", torch.tensor(3))
    assert weights_hash(layer) == weights_hash(layer)


def test_a_folder_that_cannot_be_made_is_named(source, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be written"):
        save_weights(source, tmp_path / "file" / "model.safetensors")
