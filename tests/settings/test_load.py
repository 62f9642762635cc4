from pathlib import Path

import pytest

from attakit.errors import SettingError
from attakit.settings.experiment import Experiment
from attakit.settings.load import apply_overrides, load_experiment, parse_experiment


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text('seed = 3\n[stream]\nbatch_size = 50\n[method]\nname = "tent"\nlr = 0.01\n')
    return path


def test_a_file_becomes_an_experiment(file):
    experiment = load_experiment(file)
    assert (experiment.seed, experiment.stream.batch_size) == (3, 50)
    assert (experiment.method.name, experiment.method.settings) == ("tent", {"lr": 0.01})
    assert experiment.labels == Experiment().labels
    assert experiment.label == "tent"


def test_an_empty_file_means_all_defaults(tmp_path):
    path = tmp_path / "empty.toml"
    path.touch()
    assert load_experiment(path) == Experiment()


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("seed=7", lambda e: e.seed == 7),
        ("stream.batch_size = 5", lambda e: e.stream.batch_size == 5),
        ("stream.share=1", lambda e: e.stream.share == 1.0),
        ('stream.targets=["a", "b"]', lambda e: e.stream.targets == ("a", "b")),
        ("stream.skip_corrupt=true", lambda e: e.stream.skip_corrupt is True),
        ("stream.order_settings.splits=3", lambda e: e.stream.order_settings == {"splits": 3}),
        ("labels.budget=unlimited", lambda e: e.labels.budget == "unlimited"),
        ("labels.noise=1e-1", lambda e: e.labels.noise == 0.1),
        ("report.folder=runs/a b", lambda e: e.report.folder == Path("runs/a b")),
        ("report.folder=a=b", lambda e: e.report.folder == Path("a=b")),
        ("method.lr=1e-4", lambda e: e.method.settings["lr"] == 1e-4),
        ("method.updates=2", lambda e: type(e.method.settings["updates"]) is int),
        (
            "method.trainer.weighting.rule=0.5",
            lambda e: e.method.settings["trainer"]["weighting"] == {"rule": 0.5},
        ),
        ("method.name=simatta", lambda e: e.method.name == "simatta"),
        ('method.label="my tent"', lambda e: e.label == "my tent"),
    ],
)
def test_overrides_keep_their_types(file, override, read):
    assert read(load_experiment(file, [override]))


def test_later_overrides_win_and_the_tables_given_stay_as_they_were():
    tables = {"method": {"trainer": {"lr": 1}}}
    changed = apply_overrides(tables, ["method.trainer.lr=2", "method.trainer.lr=3"])
    assert changed == {"method": {"trainer": {"lr": 3}}}
    assert tables == {"method": {"trainer": {"lr": 1}}}


@pytest.mark.parametrize("override", ["seed", "=3", "a..b=1", ".a=1", ""])
def test_a_malformed_override_is_named(file, override):
    with pytest.raises(SettingError, match=r"--set takes table\.name=value"):
        load_experiment(file, [override])


def test_an_override_below_a_value_is_refused(file):
    with pytest.raises(SettingError, match="seed is a value, not a table"):
        load_experiment(file, ["seed.more=1"])


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"straem": {}}, r"unknown setting straem\. Did you mean 'stream'\?"),
        (
            {"stream": {"bach_size": 1}},
            r"unknown setting stream\.bach_size\. Did you mean 'batch_size'\?",
        ),
        ({"labels": {"buget": 1}}, r"unknown setting labels\.buget\. Did you mean 'budget'\?"),
        ({"report": {"xyz": 1}}, r"unknown setting report\.xyz\. Known: .*folder"),
        (
            {"stream": {"batch_size": 0}},
            r"stream\.batch_size must be .*greater than or equal to 1, got 0",
        ),
        ({"threads": 100_000}, r"threads must be .*less than or equal to 1024, got 100000"),
        (
            {"stream": {"batch_size": "many"}},
            r"stream\.batch_size must be a whole number, got 'many'",
        ),
        ({"stream": {"batch_size": True}}, r"stream\.batch_size must be a whole number, got True"),
        ({"stream": {"batch_size": 2.5}}, r"stream\.batch_size must be a whole number, got 2\.5"),
        ({"stream": {"share": 0}}, r"stream\.share must be .*greater than 0, got 0"),
        ({"stream": {"share": 1.5}}, r"stream\.share must be .*less than or equal to 1, got 1\.5"),
        ({"stream": {"held_out": 1.0}}, r"stream\.held_out must be .*less than 1"),
        ({"stream": {"targets": "photo"}}, r"stream\.targets must be a list, got 'photo'"),
        ({"stream": 5}, r"stream must be .*table.*got 5"),
        ({"seed": "x"}, r"seed must be a whole number, got 'x'"),
        ({"labels": {"budget": -1}}, r"labels\.budget must be .*0.*unlimited.*got -1"),
        ({"labels": {"budget": "some"}}, r"labels\.budget must be .*unlimited.*got 'some'"),
        (
            {"labels": {"oracle": "friend"}},
            r"labels\.oracle must be .*'known', 'ask', 'model' or 'crowd', got 'friend'",
        ),
        ({"labels": {"noise": 2}}, r"labels\.noise must be .*less than or equal to 1"),
        ({"model": {"precision": "half"}}, r"model\.precision must be .*'full' or 'mixed'"),
        ({"method": {"name": 3}}, r"method\.name must be a text, got 3"),
        ({"training": {"lr": 0}}, r"training\.lr must be .*greater than 0, got 0"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_given(tables, message):
    with pytest.raises(SettingError, match=message) as caught:
        parse_experiment(tables, where="my.toml")
    assert str(caught.value).startswith("my.toml: ")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        SettingError, match=r"no experiment file at .*nowhere\.toml\. Check the name"
    ):
        load_experiment(tmp_path / "nowhere.toml")


def test_a_file_that_is_no_toml_is_named(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("seed = = 3")
    with pytest.raises(SettingError, match=r"bad\.toml is not valid TOML: .*line 1"):
        load_experiment(path)


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingError, match=r"bad\.toml cannot be read"):
        load_experiment(path)


def test_a_folder_is_no_experiment_file(tmp_path):
    with pytest.raises(SettingError, match="cannot be read as an experiment file"):
        load_experiment(tmp_path)


def test_a_suite_is_sent_to_the_command_for_suites(tmp_path):
    path = tmp_path / "suite.toml"
    path.write_text("[grid]\nseeds = [0]\n", encoding="utf-8")
    with pytest.raises(SettingError, match=r"makes this a suite.*attakit bench .*suite\.toml"):
        load_experiment(path)
