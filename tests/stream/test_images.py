"""Folders of images as domains."""

import logging
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from attakit.errors import SettingError, StreamError, UnknownName
from attakit.stream import ImageFolders, Stream, arrange, images

SHARED = Path(__file__).parents[3] / "shared" / "data"
PACS = Path(os.environ.get("ATTAKIT_DATA", SHARED)) / "PACS"


def save(path: Path, colour: tuple[int, int, int] = (9, 9, 9), size: int = 6) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (size, size), colour).save(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    save(tmp_path / "photo/dog/1.png")
    save(tmp_path / "photo/cat/2.png")
    save(tmp_path / "photo/cat/1.png")
    save(tmp_path / "art_painting/dog/pic_001.jpg")
    return tmp_path


@pytest.fixture
def decoded(monkeypatch) -> list[str]:
    """Names of the files that were decoded, in order."""
    names: list[str] = []

    def callbacks(path, size):
        names.append(path.name)
        return np.zeros((size, size, 3), dtype=np.uint8)

    monkeypatch.setattr(images, "decode_image", callbacks)
    return names


def test_samples_are_named_by_their_path_in_sorted_order(root):
    folders = ImageFolders(root, size=8)

    assert folders.classes == ("cat", "dog")
    assert list(folders.parts) == ["art_painting", "photo"]
    assert folders.parts["art_painting"].names == ("art_painting/dog/pic_001.jpg",)
    assert folders.parts["photo"].names == ("photo/cat/1.png", "photo/cat/2.png", "photo/dog/1.png")
    assert folders.parts["photo"].labels == (0, 0, 1)


def test_classes_mean_the_same_whichever_domains_are_chosen(root):
    folders = ImageFolders(root, domains=["art_painting"], size=8)

    assert folders.classes == ("cat", "dog")
    assert folders.parts["art_painting"].labels == (1,)


def test_domains_come_in_the_order_asked_for(root):
    assert list(ImageFolders(root, domains=["photo", "art_painting"]).parts) == [
        "photo",
        "art_painting",
    ]


def test_images_are_scaled_and_normalised_as_imagenet_is(root):
    save(root / "photo/dog/1.png", (255, 0, 51), size=20)

    image = ImageFolders(root, size=8).parts["photo"].load([2])

    assert image.shape == (1, 3, 8, 8)
    assert image.dtype == torch.float32
    expected = [(1 - 0.485) / 0.229, (0 - 0.456) / 0.224, (0.2 - 0.406) / 0.225]
    assert image[0, :, 3, 3].tolist() == pytest.approx(expected, abs=1e-5)


def test_images_lie_channels_last_in_memory(root):
    batch = ImageFolders(root, size=8).parts["photo"].load([0, 1])

    assert batch.is_contiguous(memory_format=torch.channels_last)


def test_loading_nothing_gives_an_empty_batch(root):
    assert ImageFolders(root, size=8).parts["photo"].load([]).shape == (0, 3, 8, 8)


def test_nothing_is_decoded_before_it_is_asked_for(root, decoded):
    folders = ImageFolders(root, size=8)
    stream = Stream(folders, arrange(folders), batch_size=1)
    assert decoded == []

    next(iter(stream))

    assert decoded == ["pic_001.jpg"]


def test_an_image_in_the_cache_is_not_decoded_again(root, decoded):
    photo = ImageFolders(root, size=8).parts["photo"]

    photo.load([0, 1])
    photo.load([1, 0])

    assert decoded == ["1.png", "2.png"]


def test_the_cache_never_holds_more_bytes_than_allowed(root, decoded):
    room_for_two = 2 * 8 * 8 * 3 + 5
    folders = ImageFolders(root, size=8, cache_bytes=room_for_two)

    for position in (0, 1, 2, 0):
        folders.parts["photo"].load([position])

    assert folders.decode.cache_info().currsize == 2
    assert decoded == ["1.png", "2.png", "1.png", "1.png"]


def test_a_cache_of_no_bytes_holds_nothing(root):
    folders = ImageFolders(root, size=8, cache_bytes=0)

    folders.parts["photo"].load([0, 0])

    assert folders.decode.cache_info().currsize == 0


def test_changing_a_batch_does_not_change_the_cache(root):
    photo = ImageFolders(root, size=8).parts["photo"]
    before = photo.load([0]).clone()

    photo.load([0]).fill_(0)

    assert torch.equal(photo.load([0]), before)


def test_hidden_files_and_other_files_are_ignored(root):
    (root / "photo/dog/notes.txt").write_text("not an image")
    (root / "photo/dog/.2.png").write_text("hidden")
    (root / "photo/labels.csv").write_text("loose")
    save(root / "photo/dog/.thumbnails/3.png")
    save(root / ".git/dog/4.png")

    folders = ImageFolders(root)

    assert list(folders.parts) == ["art_painting", "photo"]
    assert len(folders.parts["photo"]) == 3


def test_images_deeper_in_a_class_folder_and_in_capitals_are_found(root):
    save(root / "photo/dog/summer/REX.PNG")

    photo = ImageFolders(root).parts["photo"]

    assert photo.names[-1] == "photo/dog/summer/REX.PNG"
    assert photo.labels[-1] == 1


def test_an_empty_class_folder_is_a_class_without_samples(root, caplog):
    (root / "photo/bird").mkdir()

    with caplog.at_level(logging.INFO):
        folders = ImageFolders(root)

    assert folders.classes == ("bird", "cat", "dog")
    assert folders.parts["photo"].labels == (1, 1, 2)
    assert "photo has no images of bird" in caplog.text
    assert "art_painting has no images of bird, cat" in caplog.text


def test_a_folder_without_images_is_no_domain_and_adds_no_classes(root, caplog):
    (root / "splits/train").mkdir(parents=True)

    folders = ImageFolders(root)

    assert list(folders.parts) == ["art_painting", "photo"]
    assert folders.classes == ("cat", "dog")
    assert "splits holds no images and is skipped" in caplog.text


def test_a_chosen_domain_without_images_is_refused(root):
    (root / "sketch/dog").mkdir(parents=True)

    with pytest.raises(StreamError, match=r"domain 'sketch' has no images .* ROOT/domain/class"):
        ImageFolders(root, domains=["sketch", "photo"])


def test_a_missing_root_is_named_with_the_layout_expected(tmp_path):
    with pytest.raises(StreamError, match=r"/PACS does not exist\. The layout must be ROOT/domain"):
        ImageFolders(tmp_path / "PACS")


def test_a_root_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "PACS.zip").touch()

    with pytest.raises(StreamError, match=r"PACS\.zip is not a folder"):
        ImageFolders(tmp_path / "PACS.zip")


def test_a_root_without_the_domain_level_is_refused_with_the_layout(tmp_path):
    save(tmp_path / "dog/1.png")

    with pytest.raises(StreamError, match=r"no images found under .*ROOT/domain/class/image.jpg"):
        ImageFolders(tmp_path)


def test_a_domain_that_does_not_exist_gets_the_nearest_name(root):
    with pytest.raises(UnknownName, match=r"Unknown domain 'foto'\. Did you mean 'photo'"):
        ImageFolders(root, domains=["foto"])


def test_a_corrupt_image_is_named_with_what_to_do_when_it_is_decoded(root):
    (root / "photo/dog/1.png").write_bytes(b"junk")
    folders = ImageFolders(root, size=8)

    folders.parts["photo"].load([0, 1])
    with pytest.raises(StreamError, match=r"cannot read .*photo/dog/1\.png.*skip_corrupt=True"):
        folders.parts["photo"].load([2])


def test_corrupt_images_can_be_left_out_and_are_counted(root, caplog):
    (root / "photo/dog/1.png").write_bytes(b"junk")

    photo = ImageFolders(root, size=8, skip_corrupt=True).parts["photo"]

    assert photo.names == ("photo/cat/1.png", "photo/cat/2.png")
    assert "skipped 1 of 3 files in photo" in caplog.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"size": 8.5}, "size must be a whole number"),
        ({"cache_bytes": -1}, "cache_bytes must be at least 0"),
        ({"mean": (0.5,)}, "mean must be three numbers"),
        ({"std": 0.5}, "std must be three numbers, one per channel, got 0.5"),
        ({"std": (1, 0, 1)}, "std must be greater than 0, got 0"),
        ({"domains": "photo"}, "domains must be a list of names, got 'photo'"),
        ({"domains": []}, "domains must be a list of names"),
    ],
)
def test_settings_out_of_range_are_refused(root, settings, message):
    with pytest.raises(SettingError, match=f"ImageFolders: {message}"):
        ImageFolders(root, **settings)


@pytest.mark.data
@pytest.mark.skipif(not PACS.is_dir(), reason=f"PACS is not at {PACS}; set ATTAKIT_DATA")
def test_pacs_has_the_counts_of_its_paper():
    folders = ImageFolders(PACS)

    assert " ".join(folders.classes) == "dog elephant giraffe guitar horse house person"
    assert {name: len(part.names) for name, part in folders.parts.items()} == {
        "art_painting": 2048,
        "cartoon": 2344,
        "photo": 1670,
        "sketch": 3929,
    }


@pytest.mark.data
@pytest.mark.skipif(not PACS.is_dir(), reason=f"PACS is not at {PACS}; set ATTAKIT_DATA")
def test_pacs_streams_domain_after_domain():
    folders = ImageFolders(PACS, domains=["art_painting", "cartoon", "sketch"])
    stream = Stream(folders, arrange(folders), batch_size=100)

    batch = next(stream.batches(start=83))

    assert len(stream) == 84
    assert batch.inputs.shape == (21, 3, 128, 128)
    assert {stream.truth.domains[name] for name in batch.samples} == {"sketch"}


def test_a_folder_that_may_not_be_read_is_named(root, monkeypatch):
    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(StreamError, match=r"cannot be read \(Permission denied\)"):
        ImageFolders(root)


def test_a_mapping_names_the_folder_of_each_domain(root):
    save(root / "fog/5/dog/1.png")
    save(root / "fog/1/cat/1.png")

    folders = ImageFolders(root, domains={"Photo": "photo", "fog": "fog/5"}, size=8)

    assert folders.classes == ("cat", "dog")
    assert folders.parts["Photo"].names[0] == "photo/cat/1.png"
    assert folders.parts["fog"].names == ("fog/5/dog/1.png",)
    assert folders.parts["fog"].labels == (1,)
    assert folders.parts["fog"].load([0]).shape == (1, 3, 8, 8)


def test_a_mapping_to_a_folder_that_is_not_there_is_refused(root):
    with pytest.raises(StreamError, match=r"fog/3 cannot be read \(No such file or directory\)"):
        ImageFolders(root, domains={"fog": "fog/3"})
