"""Runs whose method collects small batches before it asks."""

import pytest

from attakit.bench.run import run_experiment
from attakit.build.methods import check_pool
from attakit.errors import SettingError
from attakit.report.runs import read_run
from attakit.settings.load import parse_experiment
from interruptions import press_ctrl_c, stopped

BUFFER = {"labels": {"buffer": 50}}  # the stream has eight batches of 20


def test_questions_come_when_the_buffer_is_full_and_at_the_end(small_run):
    experiment = small_run(**BUFFER)
    end = run_experiment(experiment)
    steps = read_run(experiment.report.folder).steps
    asked = [line["asked"] for line in steps]
    new = [after - before for before, after in zip([0, *asked], asked, strict=False)]
    assert [step for step, count in enumerate(new) if count] == [2, 5, 7]
    assert 0 < end["labels"] <= 20


def test_a_run_that_is_stopped_with_a_half_full_buffer_continues_as_if_it_was_not(
    small_run, results
):
    whole, parts = small_run("whole", **BUFFER), small_run("parts", **BUFFER)
    run_experiment(whole)
    stopped(parts, 3, press_ctrl_c)
    run_experiment(parts, resume=True)
    assert results(parts.report.folder) == results(whole.report.folder)


def test_a_pool_takes_no_buffer():
    experiment = parse_experiment({"pool": {"rounds": 2}, "labels": {"buffer": 5}})
    with pytest.raises(SettingError, match=r"labels\.buffer: a \[pool\] is used as a whole"):
        check_pool(experiment, experiment.pool)
