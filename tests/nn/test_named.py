import builtins
import importlib
import subprocess
import sys
import textwrap

import pytest
import torch

from attakit.errors import MissingExtra, ModelError, SettingError, UnknownName
from attakit.nn import (
    SmallCNN,
    import_timm,
    load_weights,
    named_model,
    save_weights,
    vision,
    weights_hash,
)


def test_the_small_network_has_its_size_and_shapes():
    model = named_model("small_cnn", classes=7, channels=3)
    assert isinstance(model, SmallCNN)
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 7)
    assert 60_000 <= sum(one.numel() for one in SmallCNN().parameters()) <= 120_000


def test_a_model_of_timm_has_the_classes_asked_for():
    model = named_model("resnet18", classes=7).eval()
    assert model(torch.zeros(1, 3, 64, 64)).shape == (1, 7)


def test_channels_and_image_size_reach_timm():
    model = named_model("vit_tiny_patch16_224", classes=2, channels=1, image_size=48).eval()
    assert model(torch.zeros(1, 1, 48, 48)).shape == (1, 2)


def test_first_weights_depend_on_the_seed_alone():
    torch.rand(3)
    first = weights_hash(named_model("small_cnn", classes=3, seed=1))
    torch.rand(5)
    assert weights_hash(named_model("small_cnn", classes=3, seed=1)) == first
    assert weights_hash(named_model("small_cnn", classes=3, seed=2)) != first


@pytest.mark.parametrize("name", ["small_cnn", "resnet18"])
def test_building_a_model_leaves_the_global_generator_alone(name):
    before = torch.get_rng_state()
    named_model(name, classes=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_weights_are_loaded_with_a_new_head_for_other_classes(tmp_path):
    source = named_model("small_cnn", classes=10, seed=1)
    save_weights(source, tmp_path / "source.safetensors")
    model = named_model("small_cnn", classes=3, weights=tmp_path / "source.safetensors")
    assert torch.equal(model.block1[0].weight, source.block1[0].weight)
    assert model.head.out_features == 3
    assert load_weights(source, tmp_path / "source.safetensors") == ()


@pytest.mark.parametrize("name", ["resnet81", "small-cnn"])
def test_unknown_models_are_refused_with_near_names(name):
    with pytest.raises(UnknownName, match=rf"Unknown model '{name}'. Did you mean .*Known: small"):
        named_model(name, classes=2)


def test_a_name_that_points_to_the_network_is_unknown():
    with pytest.raises(UnknownName, match=r"'hf-hub:timm/resnet18'\. Known: small_cnn, .* and the"):
        named_model("hf-hub:timm/resnet18", classes=2)


def test_a_size_for_a_model_that_takes_any_is_refused():
    with pytest.raises(
        ModelError, match=r"resnet18 does not take image_size.*Leave image_size out"
    ):
        named_model("resnet18", classes=2, image_size=64)


def test_settings_are_checked():
    with pytest.raises(SettingError, match="classes must be at least 1, got 0"):
        named_model("small_cnn", classes=0)
    with pytest.raises(SettingError, match="channels must be at least 1, got 0"):
        named_model("resnet18", classes=2, channels=0)
    with pytest.raises(SettingError, match="SmallCNN: width must be at least 1"):
        SmallCNN(width=0)


@pytest.mark.parametrize("package", ["timm", "torchvision"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, package):
    real = importlib.import_module

    def fail(name: str) -> object:
        if name == package:
            raise ModuleNotFoundError(f"No module named '{package}'")
        return real(name)

    monkeypatch.setattr(vision.importlib, "import_module", fail)
    with pytest.raises(MissingExtra, match=rf"{package} cannot.*pip install 'attakit\[models\]'"):
        named_model("resnet18", classes=2)


def test_another_failure_of_torchvision_is_passed_on(monkeypatch):
    def fail(name: str) -> object:
        raise RuntimeError("a different problem")

    monkeypatch.setattr(vision.importlib, "import_module", fail)
    with pytest.raises(RuntimeError, match="a different problem"):
        import_timm()


def test_torchvision_is_repaired_when_its_operators_are_missing(monkeypatch):
    calls, declared = [], []

    def fail_once(name: str) -> object:
        calls.append(name)
        if len(calls) == 1:
            sys.modules["torchvision.leftover"] = builtins
            raise RuntimeError("operator torchvision::nms does not exist")
        assert "torchvision.leftover" not in sys.modules
        return builtins

    monkeypatch.setattr(vision.importlib, "import_module", fail_once)
    monkeypatch.setattr(vision, "_declare_box_operators", lambda: declared.append(True))
    monkeypatch.setattr(vision.sys, "modules", dict(sys.modules))
    assert vision.import_torchvision() is builtins
    assert calls == ["torchvision", "torchvision"]
    assert declared == [True]


def test_four_threads_may_import_at_once_in_a_fresh_process():
    program = """
        from concurrent.futures import ThreadPoolExecutor
        from attakit.nn.vision import import_timm
        import sys
        assert "timm" not in sys.modules and "torchvision" not in sys.modules
        with ThreadPoolExecutor(4) as threads:
            modules = list(threads.map(lambda _: import_timm(), range(4)))
        assert len(set(map(id, modules))) == 1
        import torchvision.transforms.v2
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)
