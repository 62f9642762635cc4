"""Whole sets of corrupted images."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

from attakit import files as files_module
from attakit.errors import MissingExtra, SettingError, StreamError, UnknownName
from attakit.stream import ImageFolders, Recipe, WrittenCounts, corrupted_set, write_corrupted

QUICK = ("contrast", "gaussian_noise")


def save(path, size=(36, 33)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(len(path.name)).integers(0, 255, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def clean(tmp_path):
    """Two classes with three images."""
    save(tmp_path / "clean/cat/a.png")
    save(tmp_path / "clean/cat/b.jpg")
    save(tmp_path / "clean/dog/c.png")
    return tmp_path / "clean"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def files(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*.*") if path.suffix != ".json"
    )


def contents(folder):
    return {name: (folder / name).read_bytes() for name in files(folder)}


def test_every_image_is_written_for_every_corruption_and_severity(clean, out):
    done = write_corrupted(clean, out, corruptions=QUICK, severities=(1, 5))

    assert done == WrittenCounts(images=12, kept=0)
    assert files(out) == sorted(
        f"{corruption}/{severity}/{name}.png"
        for corruption in QUICK
        for severity in (1, 5)
        for name in ("cat/a", "cat/b", "dog/c")
    )
    with Image.open(out / "contrast/5/cat/a.png") as image:
        assert image.size == (33, 36)


def test_a_made_set_is_read_as_domains(clean, out):
    write_corrupted(clean, out, corruptions=QUICK)

    images = ImageFolders(out, domains={name: f"{name}/5" for name in QUICK}, size=8)

    assert images.classes == ("cat", "dog")
    assert images.parts["contrast"].labels == (0, 0, 1)


def test_the_same_call_gives_the_same_bytes_and_another_seed_others(clean, tmp_path):
    folders = [tmp_path / name for name in ("first", "again", "other")]
    for folder, seed in zip(folders, (3, 3, 4), strict=True):
        write_corrupted(clean, folder, corruptions=QUICK, recipe=Recipe(seed=seed))

    first, again, other = (contents(folder) for folder in folders)

    assert first == again
    changed = {name for name in first if first[name] != other[name]}
    assert changed == {name for name in first if name.startswith("gaussian_noise")}


def test_two_like_images_get_different_noise(clean, out):
    (clean / "cat/twin.png").write_bytes((clean / "cat/a.png").read_bytes())

    write_corrupted(clean, out, corruptions=["gaussian_noise"])

    made = contents(out)
    assert made["gaussian_noise/5/cat/a.png"] != made["gaussian_noise/5/cat/twin.png"]


def test_a_set_made_in_two_goes_is_the_set_made_in_one(clean, out, tmp_path):
    write_corrupted(clean, tmp_path / "one go", corruptions=QUICK)
    write_corrupted(clean, out, corruptions=QUICK[:1])
    (out / "contrast/5/dog/c.png").unlink()
    kept = (out / "contrast/5/cat/a.png").stat().st_mtime_ns

    done = write_corrupted(clean, out, corruptions=QUICK)

    assert done == WrittenCounts(images=4, kept=2)
    assert (out / "contrast/5/cat/a.png").stat().st_mtime_ns == kept
    assert contents(out) == contents(tmp_path / "one go")


def test_what_is_there_needs_no_decoding(clean, out, monkeypatch):
    write_corrupted(clean, out, corruptions=QUICK)
    monkeypatch.setattr(corrupted_set, "decode_image", None)

    assert write_corrupted(clean, out, corruptions=QUICK) == WrittenCounts(images=0, kept=6)


def test_an_image_that_cannot_be_written_leaves_nothing_behind(clean, out, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(files_module.os, "replace", fail)

    with pytest.raises(OSError, match="disk full"):
        write_corrupted(clean, out, corruptions=QUICK)

    assert [path for path in (out / "contrast").rglob("*") if path.is_file()] == []


def test_domains_become_folders_below_the_class(tmp_path, out):
    for domain in ("photo", "sketch"):
        save(tmp_path / "clean" / domain / "cat/1.png")
        save(tmp_path / "clean" / domain / "dog/1.png")

    write_corrupted(tmp_path / "clean", out, corruptions=["contrast"])

    assert files(out / "contrast/5") == [
        "cat/photo/1.png",
        "cat/sketch/1.png",
        "dog/photo/1.png",
        "dog/sketch/1.png",
    ]


def test_domains_can_be_chosen_and_loose_images_have_no_class(tmp_path, out):
    for domain in ("photo", "sketch"):
        save(tmp_path / "clean" / domain / "cat/1.png")
        save(tmp_path / "clean" / domain / "dog/1.png")
    save(tmp_path / "clean/photo/loose.png")

    write_corrupted(tmp_path / "clean", out, corruptions=["contrast"], domains=["photo"])

    assert files(out / "contrast/5") == ["cat/photo/1.png", "dog/photo/1.png"]


def test_an_unknown_domain_gets_the_nearest_name(tmp_path, out):
    save(tmp_path / "clean/photo/cat/1.png")

    with pytest.raises(UnknownName, match=r"Unknown domain 'foto'\. Did you mean 'photo'"):
        write_corrupted(tmp_path / "clean", out, domains=["foto"])


def test_classes_with_a_folder_of_images_inside_are_classes(tmp_path, out):
    save(tmp_path / "train/n01443537/images/1.png")
    save(tmp_path / "train/n01629819/images/1.png")

    write_corrupted(tmp_path / "train", out, corruptions=["contrast"])

    assert files(out / "contrast/5") == ["n01443537/images/1.png", "n01629819/images/1.png"]


def test_images_that_differ_in_their_extension_keep_it(clean, out):
    save(clean / "cat/a.jpg")

    write_corrupted(clean, out, corruptions=["contrast"])

    assert files(out / "contrast/5/cat") == ["a.jpg.png", "a.png.png", "b.png"]


def test_images_can_be_scaled_and_stored_as_jpg(clean, out, tmp_path):
    write_corrupted(
        clean, out, corruptions=["contrast"], recipe=Recipe(size=64, form="jpg", quality=90)
    )
    write_corrupted(
        clean,
        tmp_path / "rough",
        corruptions=["contrast"],
        recipe=Recipe(size=64, form="jpg", quality=5),
    )

    with Image.open(out / "contrast/5/cat/a.jpg") as image:
        assert (image.format, image.size) == ("JPEG", (64, 64))
    sizes = [
        (folder / "contrast/5/cat/a.jpg").stat().st_size for folder in (out, out.parent / "rough")
    ]
    assert sizes[0] > sizes[1]


def test_progress_counts_every_image(clean, out):
    seen = []

    write_corrupted(clean, out, corruptions=QUICK, progress=lambda *told: seen.append(told))

    assert seen == [(2, 6, "cat/a"), (4, 6, "cat/b"), (6, 6, "dog/c")]


def test_going_on_with_another_recipe_is_refused(clean, out):
    write_corrupted(clean, out, corruptions=["contrast"])

    with pytest.raises(SettingError, match=r"was started with size=None, seed=0\. Continue with"):
        write_corrupted(clean, out, corruptions=["contrast"], recipe=Recipe(size=64, seed=1))


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_recipe_is_told(clean, out, text):
    out.mkdir()
    (out / "corrupted.json").write_text(text)

    with pytest.raises(StreamError, match=r"corrupted\.json is damaged .*Delete the folder"):
        write_corrupted(clean, out, corruptions=["contrast"])


def test_the_recipe_is_kept_with_the_set(clean, out):
    write_corrupted(clean, out, corruptions=["contrast"])

    recipe = json.loads((out / "corrupted.json").read_text())
    assert recipe == {
        "size": None,
        "form": "png",
        "quality": 95,
        "seed": 0,
        "parameters": "auto",
    }


def test_a_corrupt_image_is_named(clean, out):
    (clean / "cat/b.jpg").write_bytes(b"junk")

    with pytest.raises(StreamError, match=r"^corrupt: cannot read .*b\.jpg .*and start again\.$"):
        write_corrupted(clean, out, corruptions=["contrast"])


def test_an_image_that_is_too_small_is_named(clean, out):
    save(clean / "cat/b.jpg", size=(40, 31))

    with pytest.raises(StreamError, match=r"31 × 40 pixels, .* need at least 32 .*\(--size\)"):
        write_corrupted(clean, out, corruptions=["contrast"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"corruptions": ["contras"]}, "Unknown corruption 'contras'. Did you mean 'contrast'"),
        ({"corruptions": []}, "corrupt: name at least one corruption and one severity"),
        ({"severities": []}, "corrupt: name at least one corruption and one severity"),
        ({"severities": [6]}, "severities must be at least 1 and at most 5, got 6"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_written(clean, out, settings, message):
    with pytest.raises(SettingError, match=message):
        write_corrupted(clean, out, **settings)
    assert not out.exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 31}, "size must be at least 32, got 31"),
        ({"form": "gif"}, "form must be one of png, jpg, got 'gif'"),
        ({"quality": 96}, "quality must be at least 1 and at most 95, got 96"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_a_wrong_recipe_is_refused(settings, message):
    with pytest.raises(SettingError, match=f"corrupt: {message}"):
        Recipe(**settings)


def test_a_new_set_among_the_clean_images_is_refused(clean):
    with pytest.raises(SettingError, match="is in the folder of the clean images"):
        write_corrupted(clean, clean / "corrupted")


def test_a_folder_without_images_says_the_layout(tmp_path, out):
    (tmp_path / "clean/cat").mkdir(parents=True)

    with pytest.raises(StreamError, match=r"no images found .*CLEAN/class/image\.jpg or"):
        write_corrupted(tmp_path / "clean", out)


def test_a_folder_of_one_class_says_the_layout(tmp_path, out):
    save(tmp_path / "val/images/1.png")

    with pytest.raises(StreamError, match=r"of one class, 'images'\. .*at least two classes"):
        write_corrupted(tmp_path / "val", out)


def test_a_clean_folder_that_is_not_there_is_named(tmp_path, out):
    with pytest.raises(StreamError, match=r"^corrupt: there is no folder .*/clean\. The layout"):
        write_corrupted(tmp_path / "clean", out)


def test_a_missing_package_is_told_before_anything_is_written(clean, out, monkeypatch):
    monkeypatch.setitem(sys.modules, "imagecorruptions", None)

    with pytest.raises(MissingExtra):
        write_corrupted(clean, out)
    assert not out.exists()
