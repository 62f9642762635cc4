"""What cannot work is told before a service starts."""

import pytest

from attakit.errors import ModelError, SettingError
from attakit.service.checks import check_model_fits
from attakit.service.models import source_model
from attakit.settings.load import parse_service

OWN = """
from torch import nn
from attakit.nn import seeded

def untrained(outputs=3):
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, outputs))

def build(outputs=3):
    with seeded(0, "model of a test"):
        return untrained(outputs)

def one_logit():
    return build(1)
"""


@pytest.fixture
def tried(tmp_path, monkeypatch):
    """Tries a service for arrays of two numbers and three classes, with some things changed."""
    (tmp_path / "tried_model_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)

    def run(build="build", **changed):
        tables = {
            "folder": str(tmp_path / "live"),
            "classes": ["a", "b", "c"],
            "model": {"name": f"tried_model_of_a_test:{build}"},
            "input": {"kind": "array", "shape": [2]},
            **changed,
        }
        settings = parse_service(tables)
        check_model_fits(settings, source_model(settings))

    return run


def test_what_fits_is_let_through(tried):
    tried()
    tried("one_logit", classes=["no", "yes"])


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c", "d"]])
def test_a_model_with_another_number_of_outputs_is_refused(tried, classes):
    with pytest.raises(ModelError, match=rf"has 3 outputs, but there are {len(classes)} classes"):
        tried(classes=classes)


def test_a_model_that_is_another_each_time_is_refused(tried):
    with pytest.raises(ModelError, match=r"different weights each time.*model\.weights"):
        tried("untrained")


def test_inputs_that_the_model_does_not_take_are_refused(tried):
    with pytest.raises(ModelError, match=r"\(2, 5\)"):
        tried(input={"kind": "array", "shape": [5]})


def test_inputs_without_a_shape_are_refused(tried):
    with pytest.raises(SettingError, match="needs the shape"):
        tried(input={"kind": "array"})


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ({"name": "simata"}, "Did you mean 'simatta'"),
        ({"name": "simatta", "lrr": 1}, "unknown setting 'lrr'"),
    ],
)
def test_a_method_that_cannot_be_built_is_told_by_the_server(tried, method, told):
    with pytest.raises(SettingError, match=told):
        tried(method=method)
