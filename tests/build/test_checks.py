import pytest

from attakit.build.checks import check_experiment
from attakit.errors import SettingError
from attakit.settings.load import parse_experiment

NO_DATA = {"name": "folders", "root": "nowhere", "source": "photo"}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"stream": {"name": "didgits"}}, "Unknown data set"),
        ({"stream": {"order": "sorted"}}, "sorted"),
        ({"method": {"name": "os:system"}}, "'os:system' must be a class with predict"),
        ({"method": {"selector": "os:system"}}, "'os:system' must be a class with select"),
        ({"method": {"trainer": "os:system"}}, "'os:system' must be a class with fit"),
        ({"method": {"name": "tent", "lrr": 1}}, "unknown setting 'lrr'"),
        ({"method": {"name": "tent", "lr": -1}}, "lr must be"),
        ({"method": {"trainable": "first"}}, "must be all, norm, head or last:N"),
        ({"method": {"name": "anchor_head", "source_share": 7}}, "source_share"),
        ({"method": {"name": "enhanced", "method": {"name": "tent", "lr": "x"}}}, "lr must be"),
        ({"model": {"name": "os:system"}}, "must be a Python function"),
    ],
)
def test_wrong_settings_are_found_before_data_are_looked_for(tables, message):
    stream = tables.get("stream", NO_DATA)
    with pytest.raises(SettingError, match=message):
        check_experiment(parse_experiment({**tables, "stream": stream}))


@pytest.mark.parametrize(
    "method",
    [
        {"name": "simatta", "trainable": "last:9"},
        {"name": "eata"},
        {"name": "anchor_head", "layers": ["layer1"]},
    ],
)
def test_what_depends_on_the_model_is_left_to_the_model(method):
    check_experiment(parse_experiment({"method": method, "stream": NO_DATA}))
