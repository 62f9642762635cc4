"""Simulated people, from the table [labels.crowd]; and a run that they label."""

import pytest

from attakit.bench import run_experiment
from attakit.build.oracles import build_oracle
from attakit.errors import SettingError
from attakit.label import Crowd
from attakit.queries import Query, SampleId
from attakit.settings.load import parse_experiment
from attakit.stream import Truth

NAMES = [f"{number}.png" for number in range(60)]
TRUTH = Truth(
    {name: number % 3 for number, name in enumerate(NAMES)},
    dict.fromkeys(NAMES, "night"),
    dict.fromkeys(NAMES, "night"),
    ("cat", "dog", "fox"),
)


def oracle(**table):
    labels = parse_experiment({"labels": {"oracle": "crowd", "crowd": table}}).labels
    return build_oracle(labels, TRUTH, 0)


def test_people_err_at_the_rates_given_and_not_together():
    built = oracle(noise=[0.0, 0.0, 0.5, 0.5], answers=4)
    assert isinstance(built, Crowd)
    built.ask([Query(SampleId(name), 0) for name in NAMES])
    assert len(built.collect()) == len(NAMES)
    rates = {name: one.accuracy for name, one in built.reliabilities.items()}
    assert rates["person 1"] > 0.85
    assert 0.3 < rates["person 3"] < 0.7
    votes = {name: [v.label for v in built._all if v.annotator == name] for name in rates}
    assert votes["person 3"] != votes["person 4"]


def test_a_crowd_needs_no_table():
    labels = parse_experiment({"labels": {"oracle": "crowd"}}).labels
    assert len(build_oracle(labels, TRUTH, 0).people) == 5


def test_a_table_without_its_oracle_is_refused():
    with pytest.raises(SettingError, match=r'labels\.crowd.*left out if oracle is not "crowd"'):
        parse_experiment({"labels": {"crowd": {"answers": 2}}})


def test_a_run_learns_from_what_people_agree_on(tmp_path, quick_digits):
    experiment = parse_experiment(
        {
            "stream": {"targets": ["outline"], "share": 0.08, "batch_size": 16},
            "method": {"name": "anchor_head"},
            "labels": {"budget": 6, "oracle": "crowd", "crowd": {"answers": 2}},
            "report": {"folder": str(tmp_path / "run"), "post_adaptation": False},
        }
    )
    end = run_experiment(experiment)
    assert end["answers"] == {"soft": 6}
