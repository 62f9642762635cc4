from itertools import product

import pytest
import torch
from PIL import Image

from attakit.build.sets.catalogue import FOLDERS
from attakit.errors import ModelError, SettingError, StreamError, UnknownName
from attakit.nn.weights import save_weights, weights_hash
from attakit.paper.validation import Testbed, load_testbed


def test_no_target_sample_is_both_trained_and_tested_on(loaded):
    train, test = set(loaded.target_train.names), set(loaded.target_test.names)

    assert len(test) == 60
    assert train & test == set()
    assert len(train) + len(test) == sum(len(part) for part in loaded.task.targets.parts.values())


def test_models_are_fresh_copies(loaded):
    for pretrained in (True, False):
        model = loaded.model(pretrained=pretrained)
        with torch.no_grad():
            next(model.parameters()).zero_()
        assert weights_hash(loaded.model(pretrained=pretrained)) != weights_hash(model)


def test_only_random_weights_need_new_statistics(loaded, quick_digits, tmp_path):
    save_weights(loaded.source_model, tmp_path / "start.safetensors")
    given = load_testbed(Testbed(start=tmp_path / "start.safetensors"))

    assert loaded.norm(pretrained=False) == "running"
    assert loaded.norm(pretrained=True) == "frozen"
    assert given.norm(pretrained=False) == "frozen"
    assert weights_hash(given.model(pretrained=False)) == weights_hash(loaded.source_model)


def test_the_last_testbed_is_remembered(testbed):
    assert load_testbed(testbed) is load_testbed(Testbed(test_samples=60))


def test_an_unknown_data_set_is_refused_with_the_known_ones():
    with pytest.raises(UnknownName, match=r"'pasc'.*'pacs'.*Known: digits, pacs"):
        Testbed(data="pasc")


def test_too_many_test_samples_are_refused(quick_digits):
    with pytest.raises(
        SettingError,
        match=r"test_samples must leave .* 3397 target samples, got test_samples = 5000",
    ):
        load_testbed(Testbed(test_samples=5000))


def test_missing_images_are_told(tmp_path):
    with pytest.raises(StreamError, match=r"no folder .*nowhere"):
        load_testbed(Testbed(data="pacs", root=tmp_path / "nowhere"))


def test_missing_weights_of_the_start_are_told_when_they_are_needed(quick_digits, tmp_path):
    loaded = load_testbed(Testbed(start=tmp_path / "none.safetensors"))

    loaded.model(pretrained=True)
    with pytest.raises(ModelError, match=r"no file .*none\.safetensors .* --start"):
        loaded.model(pretrained=False)


def test_a_missing_source_model_is_told(tmp_path):
    root = tmp_path / "PACS"
    pacs = FOLDERS["pacs"]
    for domain, kind, number in product(pacs.domains, pacs.classes, range(5)):
        folder = root / domain / kind
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(folder / f"{number}.png")

    testbed = Testbed(data="pacs", root=root, weights=tmp_path / "none.safetensors", test_samples=4)
    with pytest.raises(ModelError, match=r"no file .*none\.safetensors .* --weights"):
        load_testbed(testbed)
