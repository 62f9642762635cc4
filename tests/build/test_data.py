import pytest

from attakit.build.data import DATA_SETS, build_stream, load_task, summary
from attakit.build.sets.catalogue import FOLDERS
from attakit.errors import SettingError, StreamError, UnknownName
from attakit.settings.experiment import StreamTable
from attakit.settings.load import parse_experiment


@pytest.fixture
def folders(image_tree):
    def make(**settings):
        usual = {"name": "folders", "root": image_tree, "source": "photo", "size": 8}
        return StreamTable(**{**usual, **settings})

    return make


def test_digits_have_a_source_and_three_targets(quick_digits):
    task = load_task(StreamTable())
    assert list(task.targets.parts) == ["optdigits", "outline", "textured"]
    assert (len(task.source_train), len(task.source_test)) == (2800, 600)
    assert len(task.classes) == 10


def test_targets_can_be_chosen_and_ordered(quick_digits):
    task = load_task(StreamTable(targets=("textured", "optdigits")))
    assert list(task.targets.parts) == ["textured", "optdigits"]


def test_an_unknown_target_is_named(quick_digits):
    with pytest.raises(UnknownName, match=r"'outlines'. Did you mean 'outline'"):
        load_task(StreamTable(targets=("outlines",)))


def test_a_share_takes_the_same_samples_of_every_target_each_time(quick_digits):
    whole = load_task(StreamTable())
    first, second = (load_task(StreamTable(share=0.1)) for _ in range(2))
    for name, part in first.targets.parts.items():
        assert len(part.names) == round(0.1 * len(whole.targets.parts[name].names))
        assert part.names == second.targets.parts[name].names
        assert set(part.names) < set(whole.targets.parts[name].names)
    assert len(first.source_train) == 2800


@pytest.mark.parametrize("share", [0.1, 0.333, 0.9])
def test_a_share_and_its_rest_have_no_sample_in_common_and_are_everything(quick_digits, share):
    whole, part, rest = (
        load_task(StreamTable(**given)).targets.parts
        for given in ({}, {"share": share}, {"share": share, "rest": True})
    )
    for name in whole:
        assert not {*part[name].names} & {*rest[name].names}
        assert {*part[name].names} | {*rest[name].names} == {*whole[name].names}


def test_a_smaller_share_stays_away_from_the_rest_of_a_larger_one(quick_digits):
    """So a trial at a tenth of the size cannot touch data that are kept for the report."""
    small = load_task(StreamTable(share=0.03)).targets.parts
    rest = load_task(StreamTable(share=0.333, rest=True)).targets.parts
    assert not any({*small[name].names} & {*rest[name].names} for name in small)


def test_the_rest_of_everything_is_refused():
    with pytest.raises(SettingError, match=r"stream.rest must be left out if share is 1"):
        parse_experiment({"stream": {"rest": True}})


def test_a_share_that_leaves_no_rest_of_a_domain_is_named(folders):
    with pytest.raises(SettingError, match=r"stream.rest: a share of 0.99 takes all \d+ samples"):
        load_task(folders(share=0.99, rest=True))


def test_the_smallest_share_leaves_one_sample(quick_digits):
    task = load_task(StreamTable(share=1e-9))
    assert [len(part.names) for part in task.targets.parts.values()] == [1, 1, 1]


def test_an_unknown_data_set_is_named():
    with pytest.raises(UnknownName, match=r"Unknown data set 'digit'. Did you mean 'digits'"):
        load_task(StreamTable(name="digit"))


def test_folders_become_source_and_targets(folders, image_tree):
    task = load_task(folders())
    assert task.classes == ("cat", "dog")
    assert list(task.targets.parts) == ["sculpture", "sketch"]
    assert (len(task.source_train), len(task.source_test)) == (13, 3)
    assert not set(task.source_train.names) & set(task.source_test.names)
    assert task.targets.shape == (3, 8, 8)
    assert len(task.mean) == len(task.std) == 3
    assert task.where("sketch/cat/0.png") == str(image_tree / "sketch/cat/0.png")
    assert task.where("sketch/cat/0.png@2") == str(image_tree / "sketch/cat/0.png")


def test_folders_take_targets_in_the_order_given(folders):
    task = load_task(folders(source="sketch", targets=("sculpture", "photo")))
    assert list(task.targets.parts) == ["sculpture", "photo"]


def test_all_of_the_source_may_be_trained_on(folders):
    task = load_task(folders(held_out=0.0))
    assert (len(task.source_train), task.source_test) == (16, None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"root": None}, r"stream\.root is missing: .*the folder that holds the domains"),
        ({"source": None}, r"stream\.source is missing: .*the model was trained on"),
        ({"source": "foto"}, "Unknown domain 'foto'. Did you mean 'photo'"),
        ({"targets": ("sketsh",)}, "Unknown domain 'sketsh'. Did you mean 'sketch'"),
        ({"targets": ("photo",)}, "'photo' is the source, so it cannot be a target"),
    ],
)
def test_wrong_folders_are_named(folders, settings, message):
    with pytest.raises(SettingError, match=message):
        load_task(folders(**settings))


def test_a_source_without_targets_is_named(folders, tmp_path, image_tree):
    (image_tree / "sketch").rename(tmp_path / "sketch")
    (image_tree / "sculpture").rename(tmp_path / "sculpture")
    with pytest.raises(SettingError, match="no domain except the source 'photo'"):
        load_task(folders())


def test_a_corrupt_image_is_left_out_only_on_request(folders, image_tree):
    (image_tree / "sketch" / "cat" / "broken.png").write_bytes(b"no image")
    told = []
    task = load_task(folders(skip_corrupt=True), lambda *counts: told.append(counts))
    assert len(task.targets.parts["sketch"].names) == 16
    assert [done for done, _ in told] == list(range(1, told[0][1] + 1))
    stream = build_stream(parse_experiment({"stream": {"batch_size": 100}}), load_task(folders()))
    with pytest.raises(StreamError, match=r"broken\.png"):
        list(stream)


def test_a_stream_is_arranged_as_the_experiment_says(folders):
    experiment = parse_experiment(
        {"stream": {"order": "random", "order_settings": {"splits": 2}, "batch_size": 5}}
    )
    stream = build_stream(experiment, load_task(folders()))
    assert len(stream) == 7
    assert set(stream.truth.segments.values()) == {"1", "2"}


def test_an_unknown_order_is_named(folders):
    experiment = parse_experiment({"stream": {"order": "randon"}})
    with pytest.raises(UnknownName, match="Did you mean 'random'"):
        build_stream(experiment, load_task(folders()))


def test_every_data_set_has_one_line_about_it():
    assert FOLDERS.keys() < DATA_SETS.keys()
    assert {"corrupted", "tiny_imagenet_c", "cifar10_c", "cifar100_c"} < DATA_SETS.keys()
    for name in DATA_SETS:
        line = summary(name)
        assert line.endswith((".", "download."))
        assert "\n" not in line


@pytest.mark.parametrize(
    "setting", [{"size": 64}, {"root": "here"}, {"source": "mnist"}, {"held_out": 0.5}]
)
def test_settings_of_folders_are_refused_for_the_digits(setting):
    (name,) = setting
    with pytest.raises(SettingError, match=f"stream.{name} is for images in folders"):
        load_task(parse_experiment({"stream": setting}).stream)


@pytest.mark.parametrize("name", ["digits", "folders", "pacs"])
def test_a_severity_is_refused_where_there_is_none(name):
    with pytest.raises(SettingError, match=f"severity is for corrupted images, .*'{name}' has no"):
        load_task(StreamTable(name=name, severity=3))


def test_a_root_that_is_no_folder_is_named(tmp_path):
    table = StreamTable(name="folders", root=tmp_path / "nothing", source="photo")
    with pytest.raises(StreamError, match=r"no folder .*nothing .*as domain/class/image\.jpg"):
        load_task(table)
