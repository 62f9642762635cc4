from __future__ import annotations

import pytest

from attakit.bench.run import RunCallbacks, run_experiment
from attakit.bench.run_folder import SNAPSHOT
from attakit.paper import lay_out
from attakit.report.runs import read_run


class Crash(Exception):
    pass


class CrashAt:
    def __init__(self, step):
        self.step = step

    def on_step(self, result):
        if result.batch.step == self.step:
            raise Crash

    def close(self):
        pass


@pytest.fixture
def targets(all_digits):
    return list(all_digits.targets.parts)


def test_all_domains_are_measured_before_and_after_each_segment(small_run, targets):
    names = targets[:2]
    settings = small_run(
        stream={"targets": names, "share": 0.1},
        report={"domains_after_each": True, "post_adaptation": True, "source_every": 0},
    )

    end = run_experiment(settings)

    run = read_run(settings.report.folder)
    measured = [line for line in run.steps if "domains" in line]
    last = {}
    for line in run.steps:
        last |= dict.fromkeys(line["segments"], line["step"])
    assert [line["step"] for line in measured] == sorted(last.values())
    for line in (run.before, *measured):
        assert set(line["domains"]) == set(names)
        assert 0 <= line["source_accuracy"] <= 100
        assert 0 <= line["source_accuracy_whole"] <= 100
    assert measured[-1]["domains"] == end["post_adaptation"]
    assert measured[-1]["source_accuracy"] == end["source_accuracy"]


def test_it_is_off_unless_asked_for(small_run):
    settings = small_run(report={"source_every": 4})

    run_experiment(settings)

    run = read_run(settings.report.folder)
    assert not any("domains" in line for line in (run.before, *run.steps))


def test_source_checks_on_the_way_stay(small_run):
    settings = small_run(report={"domains_after_each": True, "source_every": 4})

    run_experiment(settings)

    run = read_run(settings.report.folder)
    assert [line["step"] for line in run.steps if "source_accuracy" in line] == [0, 4, 7]
    assert [line["step"] for line in run.steps if "domains" in line] == [7]


def test_a_resumed_run_measures_the_same(small_run, targets):
    tables = {
        "stream": {"targets": targets[:2], "share": 0.1},
        "report": {"domains_after_each": True},
    }
    whole, stopped = small_run("whole", **tables), small_run("stopped", **tables)
    run_experiment(whole)
    with pytest.raises(Crash):
        run_experiment(stopped, callbacks=RunCallbacks(observers=lambda *_: [CrashAt(4)]))
    assert (stopped.report.folder / SNAPSHOT).exists()

    run_experiment(stopped, resume=True)

    first, second = (read_run(each.report.folder) for each in (whole, stopped))
    assert first.before == second.before
    assert [line.get("domains") for line in first.steps] == [
        line.get("domains") for line in second.steps
    ]


def test_the_complete_layout_is_filled(small_run, targets):
    names = targets[:2]
    settings = small_run(
        stream={"targets": names, "share": 0.1}, report={"domains_after_each": True}
    )
    run_experiment(settings)

    (table,) = lay_out("complete", [read_run(settings.report.folder)])

    filled = {row.label: [cell.figure is not None for cell in row.cells] for row in table.rows}
    assert filled[names[0]] == filled[names[1]] == filled["source"] == [True, True, True]
    assert filled["current"] == [False, True, True]
