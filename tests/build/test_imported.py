import os
import sys

import pytest
import torch

from attakit.build.imported import check_builder, imported_model
from attakit.build.models import source_classifier, weights_file
from attakit.build.task import Task
from attakit.errors import ModelError, SettingError
from attakit.nn.weights import weights_hash
from attakit.settings.load import parse_experiment
from attakit.stream import Domains

OWN = """
import torch
from torch import nn

called = []

def trained():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))

def untrained():
    return nn.Linear(2, 3)

def narrow():
    torch.manual_seed(3)
    return nn.Linear(2, 2)

def needs(size):
    called.append(size)

class Other:
    def __init__(self):
        called.append("Other")
"""


@pytest.fixture(autouse=True)
def own_module(tmp_path, monkeypatch):
    (tmp_path / "models_of_this_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ATTAKIT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def task():
    return Task(
        ("a", "b", "c"), Domains.from_arrays("abc", {"new": (torch.zeros(4, 2), [0, 1, 2, 0])})
    )


def experiment(name):
    return parse_experiment({"model": {"name": f"models_of_this_test:{name}", "device": "cpu"}})


def test_a_function_that_returns_a_trained_model_needs_no_file_of_weights(task):
    model = source_classifier(experiment("trained"), task)
    assert model(torch.zeros(4, 2)).logits.shape == (4, 3)


def test_its_weights_are_kept_where_other_machines_can_get_them(task):
    tables = experiment("trained")
    file = weights_file(tables, task)
    again = source_classifier(tables, task, weights=file)
    assert weights_hash(again) == weights_hash(source_classifier(tables, task))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("untrained", "returns different weights each time it is called"),
        ("narrow", "has 2 outputs, but there are 3 classes"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(task, name, message):
    with pytest.raises(ModelError, match=message):
        source_classifier(experiment(name), task)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("needs", "called without arguments, but it needs some .*'size'"),
        ("Other", "must be a Python function .* but it is another class"),
    ],
)
def test_what_can_make_no_model_is_not_called(name, message):
    with pytest.raises(SettingError, match=message):
        imported_model(f"models_of_this_test:{name}")
    assert sys.modules["models_of_this_test"].called == []


def test_a_command_of_the_system_is_refused_before_it_runs():
    assert callable(os.abort)  # without arguments; it would end this process
    with pytest.raises(SettingError, match="must be a Python function"):
        check_builder("os:abort")
