"""CIFAR-10-C and CIFAR-100-C in their published layout, with few images."""

import pickle

import numpy as np
import pytest
import torch

from attakit.build.data import build_stream, load_task
from attakit.errors import SettingError, StreamError, UnknownName
from attakit.settings.experiment import StreamTable
from attakit.settings.load import parse_experiment
from attakit.stream import CORRUPTIONS

PER_SEVERITY = 20


def draw(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)


def write_set(root, classes=10, names=CORRUPTIONS):
    root.mkdir()
    labels = np.arange(max(PER_SEVERITY, classes)) % classes
    np.save(root / "labels.npy", np.tile(labels, 5))
    for seed, name in enumerate(names):
        np.save(root / f"{name}.npy", draw(5 * len(labels), seed))
    return root


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTAKIT_DATA", str(tmp_path))
    return write_set(tmp_path / "CIFAR-10-C")


def load(name="cifar10_c", **settings):
    return load_task(StreamTable(name=name, **settings))


def test_the_fifteen_corruptions_are_streamed_in_their_order(root):
    task = load()

    assert tuple(task.targets.parts) == CORRUPTIONS
    assert task.classes[:3] == ("airplane", "automobile", "bird")
    assert (task.source_train, task.root) == (None, None)


def test_images_are_those_of_the_severity_at_their_own_size(root):
    pixels = np.load(root / "fog.npy")

    fog = load(severity=2).targets.parts["fog"]

    assert fog.names[0] == "fog/20"
    assert (len(fog), fog.shape) == (PER_SEVERITY, (3, 32, 32))
    assert fog.labels == tuple(np.arange(PER_SEVERITY) % 10)
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    expected = (torch.from_numpy(pixels[21]) / 255 - mean) / std
    assert torch.allclose(fog.load([1])[0].permute(1, 2, 0), expected, atol=1e-5)


def test_severity_five_is_the_last_fifth(root):
    assert load().targets.parts["fog"].names[-1] == "fog/99"


def test_images_can_be_scaled(root):
    assert load(size=64).targets.parts["fog"].load([0, 3]).shape == (2, 3, 64, 64)


def test_files_stay_on_disk(root, monkeypatch):
    opened = []
    plain_load = np.load
    monkeypatch.setattr(np, "load", lambda *a, **k: opened.append(k) or plain_load(*a, **k))

    load(targets=("fog",))

    assert opened == [{"mmap_mode": "r", "allow_pickle": False}] * 2


def test_a_stream_runs_over_it(root):
    experiment = parse_experiment({"stream": {"name": "cifar10_c", "batch_size": 100}})

    stream = build_stream(experiment, load_task(experiment.stream))

    assert len(stream) == 3
    assert next(iter(stream)).inputs.shape == (100, 3, 32, 32)


def test_the_four_extra_corruptions_come_on_request(root):
    np.save(root / "spatter.npy", draw(5 * PER_SEVERITY))

    assert list(load(targets=("spatter", "fog")).targets.parts) == ["spatter", "fog"]


def test_a_corruption_may_be_the_source(root):
    task = load(source="brightness")

    assert "brightness" not in task.targets.parts
    assert task.source_train.names[0].startswith("brightness/8")


def test_clean_images_are_the_source_where_they_are(root):
    np.save(root / "clean.npy", draw(30))
    np.save(root / "clean_labels.npy", np.arange(30) % 10)

    task = load()

    assert (len(task.source_train), len(task.source_test)) == (24, 6)
    assert task.source_train.names[0].startswith("clean/")
    assert len(task.targets.parts) == 15


def test_a_hundred_classes_have_their_names(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTAKIT_DATA", str(tmp_path))
    write_set(tmp_path / "cifar100c", classes=100, names=["fog"])

    task = load("cifar100_c", targets=("fog",))

    assert (len(task.classes), task.classes[53]) == (100, "orange")


def test_a_missing_set_says_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTAKIT_DATA", str(tmp_path))

    with pytest.raises(StreamError) as caught:
        load()

    message = str(caught.value)
    assert f"There is no folder {tmp_path / 'CIFAR-10-C'} for the data set 'cifar10_c'" in message
    assert f"{tmp_path / 'CIFAR-10-C'}/corruption.npy" in message
    assert "the 10 classes airplane, automobile" in message


def test_missing_files_are_named(root):
    (root / "fog.npy").unlink()
    (root / "labels.npy").unlink()

    with pytest.raises(StreamError, match=r"there is no labels\.npy, fog\.npy, only brightness"):
        load()


def test_clean_images_that_are_not_there_are_told_and_pickles_are_not_read(root):
    (root / "data_batch_1").write_bytes(pickle.dumps({"data": []}))

    with pytest.raises(
        StreamError, match=r"no .*clean\.npy .*training images of CIFAR-10\. .*pickle"
    ):
        load(source="clean")


def test_clean_labels_that_are_not_there_are_told(root):
    np.save(root / "clean.npy", draw(10))

    with pytest.raises(StreamError, match=r"There is no .*clean_labels\.npy"):
        load()


def test_a_file_with_objects_is_refused(root):
    np.save(root / "fog.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)

    with pytest.raises(StreamError, match=r"fog\.npy cannot be read as a NumPy file: .*Download"):
        load()


def test_a_file_that_was_cut_is_refused(root):
    whole = (root / "fog.npy").read_bytes()
    (root / "fog.npy").write_bytes(whole[:1000])

    with pytest.raises(StreamError, match=r"fog\.npy cannot be read as a NumPy file"):
        load()


def test_an_archive_of_arrays_is_refused(root):
    with (root / "fog.npy").open("wb") as file:
        np.savez(file, first=draw(1))

    with pytest.raises(StreamError, match="holds several arrays; there must be one"):
        load()


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        (
            "fog",
            np.zeros((5, 32, 32, 3)),
            r"must be bytes \(count, height, width, 3\), got float64",
        ),
        ("fog", np.zeros((5, 3072), dtype=np.uint8), r"got uint8 of shape \(5, 3072\)"),
        ("fog", draw(60), r"fog\.npy has 60 images, but there are 100 labels for it"),
        ("labels", np.zeros((5, 2), dtype=int), "labels must be one row of whole numbers"),
        ("labels", np.zeros(100), "got float64 of shape"),
        ("labels", np.arange(100) % 9, "classes 0 to 9, got 9 from 0 to 8"),
        ("labels", np.zeros(0, dtype=int), "0 to 9, got none"),
        ("labels", np.arange(100) // 10, "must repeat 5 times, once per severity"),
        ("labels", np.arange(101) % 10, "the 101 labels there do not repeat"),
    ],
)
def test_files_of_another_kind_are_refused(root, name, array, message):
    np.save(root / f"{name}.npy", array)

    with pytest.raises(StreamError, match=message):
        load()


def test_an_unknown_corruption_gets_the_nearest_name(root):
    with pytest.raises(UnknownName, match=r"Unknown domain 'frog'\. Did you mean 'fog'"):
        load(targets=("frog",))


def test_there_are_no_corrupt_files_to_skip(root):
    with pytest.raises(SettingError, match=r"stream\.skip_corrupt is for images in folders"):
        load(skip_corrupt=True)


def test_fewer_images_than_published_are_told_in_one_line(root, caplog):
    load(targets=("fog",))

    assert caplog.messages == [
        "CIFAR-10-C: found 100 images, the published set has 50,000 (fog 100 of 50,000). Results "
        "will not be comparable with published ones."
    ]


@pytest.mark.parametrize(("name", "last"), [("cifar10_c", 9), ("cifar100_c", 99)])
def test_a_missing_set_is_told_with_its_labels_and_the_shape_of_its_files(
    tmp_path, monkeypatch, name, last
):
    monkeypatch.setenv("ATTAKIT_DATA", str(tmp_path))

    with pytest.raises(StreamError, match=r"shape \(50000, 32, 32, 3\)") as caught:
        load(name)

    assert f"labels.npy, 50,000 class numbers from 0 to {last}" in str(caught.value)


def test_missing_labels_are_told_with_what_they_are(root):
    (root / "labels.npy").unlink()

    with pytest.raises(StreamError, match=r"there is no labels\.npy.*50,000 class numbers"):
        load()
