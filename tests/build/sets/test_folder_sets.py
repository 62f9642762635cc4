"""PACS, VLCS and Office-Home, found in any spelling and checked to be complete."""

import os
from pathlib import Path

import pytest
from PIL import Image

from attakit.build.data import load_task
from attakit.build.sets.catalogue import FOLDERS, listed, plain
from attakit.build.sets.places import warn_of_counts
from attakit.errors import SettingError, StreamError, UnknownName
from attakit.settings.experiment import StreamTable

SHARED = Path(__file__).parents[4] / "shared" / "data"
PACS = Path(os.environ.get("ATTAKIT_DATA", SHARED)) / "PACS"


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The folder that holds all data sets."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("ATTAKIT_DATA", str(folder))
    return folder


def write_set(root, name, domains=None, classes=None):
    """One white image for every class of every domain."""
    known = FOLDERS[name]
    for domain in domains or known.domains:
        for kind in classes or known.classes:
            folder = root / domain / kind
            folder.mkdir(parents=True)
            Image.new("L", (2, 2), 255).save(folder / "1.png")
            Image.new("L", (2, 2), 255).save(folder / "2.png")


def load(name, **settings):
    return load_task(StreamTable(name=name, size=8, **settings))


@pytest.mark.parametrize(
    ("name", "source", "targets", "count"),
    [
        ("pacs", "photo", ["art_painting", "cartoon", "sketch"], 7),
        ("vlcs", "Caltech101", ["LabelMe", "SUN09", "VOC2007"], 5),
        ("office_home", "Real World", ["Art", "Clipart", "Product"], 65),
    ],
)
def test_source_and_order_are_those_of_the_paper(data, name, source, targets, count):
    write_set(data / FOLDERS[name].folders[0], name)

    task = load(name)

    assert list(task.targets.parts) == targets
    assert len(task.classes) == count
    assert task.source_train.names[0].startswith(f"{source}/")
    assert len(task.source_train) + len(task.source_test) == 2 * count


@pytest.mark.parametrize(
    ("name", "folder", "domains"),
    [
        ("pacs", "pacs", ["photo", "artpainting", "Cartoon", "SKETCH"]),
        ("pacs", "PACS/kfold", ["photo", "art_painting", "cartoon", "sketch"]),
        ("vlcs", "vlcs", ["CALTECH", "labelme", "SUN", "PASCAL"]),
        ("vlcs", "VLCS", ["caltech101", "LABELME", "sun09", "VOC_2007"]),
        ("office_home", "OfficeHome", ["RealWorld", "Art", "Clipart", "Product"]),
        ("office_home", "Office-Home", ["Real_World", "art", "clipart", "product"]),
        ("office_home", "OfficeHomeDataset_10072016", ["Real World", "Art", "Clipart", "Product"]),
        (
            "office_home",
            "office_home/OfficeHomeDataset_10072016",
            ["real", "Art", "Clipart", "Product"],
        ),
    ],
)
def test_other_spellings_are_found_and_domains_keep_their_proper_names(data, name, folder, domains):
    write_set(data / folder, name, domains)

    task = load(name)

    assert tuple(task.targets.parts) == FOLDERS[name].targets
    assert task.root == data / folder
    assert Path(task.where(task.source_train.names[0])).is_file()


def test_the_usual_folder_wins_over_other_spellings(data):
    write_set(data / "office_home", "office_home")
    write_set(data / "OfficeHome", "office_home")

    assert load("office_home").root == data / "office_home"


def test_the_proper_name_of_a_domain_wins_over_other_spellings(data):
    write_set(data / "PACS", "pacs", ["photo", "art_painting", "art", "cartoon", "sketch"])

    names = load("pacs").targets.parts["art_painting"].names

    assert names[0] == "art_painting/dog/1.png"


def test_a_root_may_have_any_name(tmp_path):
    write_set(tmp_path / "downloads", "pacs")

    assert load("pacs", root=tmp_path / "downloads").root == tmp_path / "downloads"


def test_classes_may_be_spelled_in_other_ways(data):
    classes = [name.lower().replace("_", " ") for name in FOLDERS["office_home"].classes]
    write_set(data / "office_home", "office_home", classes=classes)

    assert "alarm clock" in load("office_home").classes


def test_source_and_targets_may_be_spelled_in_other_ways(data):
    write_set(data / "office_home", "office_home")

    task = load("office_home", source="art", targets=("RealWorld", "product"))

    assert list(task.targets.parts) == ["Real World", "Product"]
    assert task.source_train.names[0].startswith("Art/")


def test_another_source_streams_the_usual_one(data):
    write_set(data / "PACS", "pacs")

    task = load("pacs", source="sketch")

    assert list(task.targets.parts) == ["photo", "art_painting", "cartoon"]


def test_domains_that_are_not_used_need_not_be_there(data):
    write_set(data / "PACS", "pacs", ["photo", "sketch"])

    assert list(load("pacs", targets=("sketch",)).targets.parts) == ["sketch"]


def test_an_unknown_domain_gets_the_nearest_name(data):
    write_set(data / "PACS", "pacs")

    with pytest.raises(UnknownName, match=r"Unknown domain 'foto'\. Did you mean 'photo'"):
        load("pacs", source="foto")


def test_the_source_cannot_be_a_target(data):
    write_set(data / "PACS", "pacs")

    with pytest.raises(SettingError, match="'photo' is the source, so it cannot be a target"):
        load("pacs", targets=("Photo",))


def test_a_missing_set_says_where_to_put_it_and_what_it_must_hold(data):
    with pytest.raises(StreamError) as caught:
        load("pacs")

    message = str(caught.value)
    assert message.startswith(f"There is no folder {data / 'PACS'} for the data set 'pacs'.")
    for words in (
        f"{data / 'PACS'}/domain/class/image.jpg",
        "the domains photo, art_painting, cartoon, sketch",
        "the 7 classes dog, elephant, giraffe, guitar, horse, house, person",
        "stream.root",
        "$ATTAKIT_DATA",
        "docs/data-sets.md",
    ):
        assert words in message


def test_without_a_data_folder_the_current_one_is_searched(tmp_path, monkeypatch):
    monkeypatch.delenv("ATTAKIT_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StreamError, match="There is no folder data/VLCS"):
        load("vlcs")


def test_a_missing_root_is_named(tmp_path):
    with pytest.raises(
        StreamError, match=r"There is no folder .*/somewhere for the data set 'vlcs'"
    ):
        load("vlcs", root=tmp_path / "somewhere")


def test_an_empty_folder_says_what_it_must_hold(data):
    (data / "VLCS").mkdir()

    with pytest.raises(StreamError, match=r"VLCS holds no domain of VLCS\. Put VLCS .*LabelMe"):
        load("vlcs")


def test_missing_domains_are_named(data):
    write_set(data / "PACS", "pacs", ["photo", "sketch"])

    with pytest.raises(StreamError) as caught:
        load("pacs")

    message = str(caught.value)
    assert "PACS in" in message
    assert "there is no art_painting, cartoon, only photo, sketch" in message
    assert f"Add what is missing as {data / 'PACS'}/domain/class/image.jpg" in message


def test_missing_classes_are_named_for_each_domain(data):
    write_set(data / "PACS", "pacs")
    for path in (data / "PACS/sketch/dog").iterdir():
        path.unlink()
    (data / "PACS/cartoon/house").rename(data / "house")

    message = (
        r"not complete: cartoon has no images of house; sketch has no images of dog\. .*'folders'"
    )
    with pytest.raises(StreamError, match=message):
        load("pacs")


def test_a_domain_without_images_is_named(data):
    write_set(data / "PACS", "pacs", ["photo", "art_painting", "cartoon"])
    (data / "PACS/sketch").mkdir()

    with pytest.raises(StreamError, match="domain 'sketch' has no images"):
        load("pacs")


def test_classes_that_do_not_belong_are_named(data):
    write_set(data / "PACS", "pacs")
    write_set(data / "PACS", "pacs", classes=["zebra"])

    with pytest.raises(
        StreamError, match=r"not among its 7 classes: zebra\. Its classes are dog, eleph"
    ):
        load("pacs")


def test_names_are_compared_without_case_and_signs():
    assert plain("Real World") == plain("real-world") == "realworld"
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefghijklm")).endswith("j and 3 more")


@pytest.mark.data
@pytest.mark.skipif(not PACS.is_dir(), reason=f"PACS is not at {PACS}; set ATTAKIT_DATA")
def test_pacs_is_complete():
    task = load("pacs", root=PACS)

    counts = {name: len(part.names) for name, part in task.targets.parts.items()}
    assert counts == {"art_painting": 2048, "cartoon": 2344, "sketch": 3929}
    assert (len(task.source_train), len(task.source_test)) == (1336, 334)
    assert task.classes == FOLDERS["pacs"].classes


def test_another_number_of_images_than_the_published_one_is_told_in_one_line(data, caplog):
    write_set(data / "PACS", "pacs")

    load("pacs", targets=("sketch",))

    assert caplog.messages == [
        "PACS: found 28 images, the published set has 5,599 (photo 14 of 1,670, sketch 14 of "
        "3,929). Results will not be comparable with published ones."
    ]


def test_the_published_number_of_images_is_not_worth_a_line(caplog):
    known = FOLDERS["pacs"]

    warn_of_counts(known, known.images)

    assert caplog.messages == []
    assert {name: sum(each.images.values()) for name, each in FOLDERS.items()} == {
        "pacs": 9_991,
        "vlcs": 10_729,
        "office_home": 15_588,
    }
