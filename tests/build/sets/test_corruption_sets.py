"""Tiny-ImageNet-C, and sets that were made with `attakit corrupt`."""

import pytest
from PIL import Image

from attakit.build.data import load_task
from attakit.errors import SettingError, StreamError, UnknownName
from attakit.settings.experiment import StreamTable
from attakit.stream import CORRUPTIONS, write_corrupted

CLASSES = [f"n{number:08}" for number in range(200)]


def write_tree(folder, classes, name="1.JPEG"):
    for kind in classes:
        (folder / kind).mkdir(parents=True, exist_ok=True)
        Image.new("L", (2, 2), 255).save(folder / kind / name)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A Tiny-ImageNet-C of two corruptions, 200 classes and an image of each."""
    monkeypatch.setenv("ATTAKIT_DATA", str(tmp_path))
    root = tmp_path / "Tiny-ImageNet-C"
    for corruption in ("brightness", "fog"):
        write_tree(root / corruption / "5", CLASSES)
    return root


@pytest.fixture
def made(tmp_path):
    """A set made from four images at severities 2 and 5."""
    for kind in ("cat", "dog"):
        for name in ("1.png", "2.png"):
            path = tmp_path / "clean" / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (32, 32), "teal").save(path)
    root = tmp_path / "made"
    names = ("pixelate", "contrast", "brightness")
    write_corrupted(tmp_path / "clean", root, corruptions=names, severities=(2, 5))
    return root


def load_tiny(**settings):
    return load_task(StreamTable(name="tiny_imagenet_c", **{"size": 8, **settings}))


def load_made(root, **settings):
    return load_task(StreamTable(name="corrupted", root=root, size=8, **settings))


def test_brightness_is_the_source_and_the_other_fourteen_come_in_the_order_of_the_table(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("ATTAKIT_DATA", str(tmp_path))
    small = tmp_path / "small"
    write_tree(small, CLASSES)
    for corruption in CORRUPTIONS:
        (tmp_path / "tiny-imagenet-c" / corruption).mkdir(parents=True)
        (tmp_path / "tiny-imagenet-c" / corruption / "5").symlink_to(small)

    task = load_tiny()

    assert list(task.targets.parts) == [
        *("gaussian_noise", "shot_noise", "impulse_noise"),
        *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
        *("snow", "frost", "fog"),
        *("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    ]
    assert len(task.classes) == 200
    assert (len(task.source_train), len(task.source_test)) == (160, 40)
    assert task.source_train.names[0].startswith("brightness/5/n0")


def test_image_files_have_128_pixels_unless_said_otherwise(tiny):
    assert load_tiny(targets=("fog",), size=None).targets.shape == (3, 128, 128)


def test_samples_are_named_by_their_path(tiny):
    task = load_tiny(targets=("fog",))

    (name, *_) = task.targets.parts["fog"].names
    assert name == "fog/5/n00000000/1.JPEG"
    assert task.where(name) == str(tiny / name)
    assert task.targets.parts["fog"].load([0]).shape == (1, 3, 8, 8)


def test_the_source_may_be_streamed_again_on_request(tiny):
    task = load_tiny(targets=("brightness", "fog"))

    assert list(task.targets.parts) == ["brightness", "fog"]
    assert task.source_train is not None


def test_clean_images_may_be_the_source(tiny):
    write_tree(tiny / "clean", CLASSES, name="images_0.JPEG")

    task = load_tiny(source="clean", targets=("fog",))

    assert task.source_train.names[0].startswith("clean/n0")


def test_clean_images_that_are_not_there_are_told(tiny):
    with pytest.raises(StreamError, match=r"no folder .*clean for stream\.source = 'clean'\. Put"):
        load_tiny(source="clean", targets=("fog",))


def test_clean_images_of_other_classes_are_told(tiny):
    write_tree(tiny / "clean", CLASSES[:199])

    with pytest.raises(StreamError, match="clean has no images of n00000199"):
        load_tiny(source="clean", targets=("fog",))


def test_a_missing_set_says_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTAKIT_DATA", str(tmp_path))

    with pytest.raises(StreamError) as caught:
        load_tiny()

    message = str(caught.value)
    place = tmp_path / "Tiny-ImageNet-C"
    assert f"There is no folder {place} for the data set 'tiny_imagenet_c'" in message
    assert f"{place}/corruption/severity/class/image.JPEG" in message
    assert "brightness, gaussian_noise, shot_noise" in message
    assert "200 classes" in message


def test_missing_corruptions_are_named(tiny):
    with pytest.raises(StreamError, match=r"there is no snow, frost, only brightness, fog\."):
        load_tiny(targets=("snow", "frost", "fog"))


def test_an_unknown_corruption_gets_the_nearest_name(tiny):
    with pytest.raises(UnknownName, match=r"Unknown domain 'frog'\. Did you mean 'fog'"):
        load_tiny(targets=("frog",))


def test_a_missing_severity_is_named_with_those_there_are(tiny):
    with pytest.raises(StreamError, match=r"no severity 3 of fog, brightness: .*fog holds 5\. Add"):
        load_tiny(targets=("fog",), severity=3)


def test_a_set_of_too_few_classes_is_told(tiny):
    for corruption in ("fog", "brightness"):
        (tiny / corruption / "5" / CLASSES[0]).rename(tiny / f"{corruption}-lost")

    with pytest.raises(StreamError, match=r"has 199 classes instead of 200\. .*'corrupted'"):
        load_tiny(targets=("fog",))


def test_a_corruption_without_some_class_is_told(tiny):
    (tiny / "fog/5" / CLASSES[7]).rename(tiny / "lost")

    with pytest.raises(StreamError, match=r"Tiny-ImageNet-C .*fog has no images of n00000007"):
        load_tiny(targets=("fog",))


def test_a_corruption_with_fewer_images_is_told(tiny):
    write_tree(tiny / "brightness/5", CLASSES[:3], name="2.JPEG")

    with pytest.raises(StreamError, match="not complete: of 203 images, fog has 200"):
        load_tiny(targets=("fog",))


def test_images_left_out_because_they_are_corrupt_are_not_missed(tiny):
    write_tree(tiny / "brightness/5", CLASSES, name="2.JPEG")
    write_tree(tiny / "fog/5", CLASSES, name="2.JPEG")
    (tiny / "fog/5" / CLASSES[0] / "2.JPEG").write_bytes(b"junk")

    task = load_tiny(targets=("fog",), skip_corrupt=True)

    assert len(task.targets.parts["fog"].names) == 399


def test_a_made_set_streams_its_corruptions_in_the_usual_order(made):
    (made / "my_own").symlink_to(made / "contrast")

    task = load_made(made)

    assert list(task.targets.parts) == ["brightness", "contrast", "pixelate", "my_own"]
    assert task.classes == ("cat", "dog")
    assert task.targets.parts["contrast"].names[0] == "contrast/5/cat/1.png"
    assert task.source_train is None
    assert task.source_test is None


def test_a_made_set_has_severities(made):
    task = load_made(made, severity=2)

    assert task.targets.parts["contrast"].names[0] == "contrast/2/cat/1.png"


def test_a_made_set_may_have_one_of_its_corruptions_or_clean_images_as_source(made, tmp_path):
    one = load_made(made, source="brightness")
    (made / "clean").symlink_to(tmp_path / "clean")
    clean = load_made(made)

    assert list(one.targets.parts) == ["contrast", "pixelate"]
    assert len(one.source_train) == 3
    assert list(clean.targets.parts) == ["brightness", "contrast", "pixelate"]
    assert clean.source_train.names[0].startswith("clean/cat/")


def test_a_set_that_is_not_finished_is_told(made):
    (made / "contrast/5/dog/2.png").unlink()

    with pytest.raises(StreamError, match=r"of 4 images, contrast has 3\. Run `attakit corrupt`"):
        load_made(made)


def test_a_made_set_without_some_class_is_told(made):
    (made / "contrast/5/dog").rename(made / "contrast/dog")

    with pytest.raises(StreamError, match=r"made is not complete: contrast has no images of dog\."):
        load_made(made)


@pytest.mark.parametrize("setting", [{"source": "contrats"}, {"targets": ("contrats",)}])
def test_a_corruption_that_was_not_made_gets_the_nearest_name(made, setting):
    with pytest.raises(UnknownName, match=r"Unknown corruption 'contrats'\. Did you mean 'contr"):
        load_made(made, **setting)


def test_a_made_set_needs_a_root():
    with pytest.raises(SettingError, match=r"stream\.root is missing: .*`attakit corrupt` wrote"):
        load_made(None)


def test_a_made_set_that_is_not_there_says_how_to_make_it(tmp_path):
    with pytest.raises(StreamError, match="Make it with `attakit corrupt CLEAN_FOLDER /"):
        load_made(tmp_path / "made")


def test_a_folder_without_corruptions_is_told(tmp_path):
    (tmp_path / "made").mkdir()

    with pytest.raises(SettingError, match="holds no corruption to adapt to"):
        load_made(tmp_path / "made")
