"""Pool runs from their experiment to their results, on a few digits."""

import pytest

from attakit.bench.run import RunCallbacks, run_experiment
from attakit.bench.run_folder import DONE, SNAPSHOT
from attakit.build.methods import check_pool
from attakit.errors import SettingError, StateError
from attakit.report.html import write_report
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.pictures import PICTURES_FILE
from attakit.report.runs import read_run
from attakit.report.summaries import summarise
from attakit.settings.experiment import Experiment
from attakit.settings.load import parse_experiment
from interruptions import At, crash, press_ctrl_c, pretend_another_model, stopped
from small_experiments import make_experiment

ROUNDS = 3
POOL = {"rounds": ROUNDS, "updates": 3, "selector": {"name": "clue", "inits": 1}}


@pytest.fixture
def pool_run(tmp_path, quick_digits):
    """Makes a short experiment: three rounds over 160 digits of two domains."""

    def make(folder="run", pool=POOL, **tables):
        settings = {
            "threads": 1,
            "stream": {"targets": ["outline", "textured"], "share": 0.1, "batch_size": 50},
            "pool": pool,
            "labels": {"budget": 20},
            "report": {"source_every": 0},
        }
        return make_experiment(settings, tables, tmp_path / folder)

    return make


def test_a_run_writes_one_line_per_round_and_the_figures_of_the_whole(pool_run):
    experiment = pool_run(report={"source_every": 2})

    end = run_experiment(experiment)

    run = read_run(experiment.report.folder)
    assert [line["step"] for line in run.steps] == list(range(ROUNDS))
    assert [line["asked"] for line in run.steps] == [6, 12, 20]
    assert [line["size"] for line in run.steps] == [6, 6, 8]
    assert all(0 <= line["pool_accuracy"] <= 100 for line in run.steps)
    assert ["source_accuracy" in line for line in run.steps] == [True, False, True]
    assert 0 <= run.before["source_accuracy"] <= 100
    assert run.segments == ["outline", "textured"]
    assert {"kind": "end", **end} == run.end
    assert (end["stream_accuracy"], end["segments"]) == (None, {})
    assert (end["labels"], end["asked"], end["updates"]) == (20, 20, 3 * ROUNDS)
    assert end["post_adaptation"].keys() == {"outline", "textured"}
    assert {"seconds", "peak_memory_mb", "source_accuracy"} <= end.keys()
    names = {path.name for path in experiment.report.folder.iterdir()}
    assert names == {STEPS_FILE, PICTURES_FILE, DONE}


def test_less_is_measured_on_request(pool_run):
    experiment = pool_run(report={"pictures": False, "post_adaptation": False})

    end = run_experiment(experiment)

    assert "post_adaptation" not in end
    assert not (experiment.report.folder / PICTURES_FILE).exists()


def test_tables_and_reports_read_pool_runs_beside_stream_runs(pool_run, small_run, tmp_path):
    experiments = [
        small_run("stream"),
        *(pool_run(f"pool-{seed}", seed=seed) for seed in range(2)),
        pool_run("labelled", pool={**POOL, "label": "CLUE, in rounds"}),
    ]
    for experiment in experiments:
        run_experiment(experiment)
    folders = [experiment.report.folder for experiment in experiments]

    rows = summarise([read_run(folder) for folder in folders])
    write_report(folders, tmp_path / "report.html", "Pools")

    assert [(row.label, row.runs) for row in rows] == [
        ("simatta", 1),
        ("pool, clue", 2),
        ("CLUE, in rounds", 1),
    ]
    assert rows[1].stream is None
    assert rows[1].labels.mean == 20
    assert rows[1].after.keys() == {"outline", "textured"}


def test_runs_along_a_stream_say_nothing_of_pools(small_run):
    experiment = small_run()
    run_experiment(experiment)

    told = read_run(experiment.report.folder).experiment

    assert "pool" not in told
    assert told["method"]["name"] == "simatta"


LABELS = {
    "instant": {},
    "late": {"delay": 1, "jitter": 1},
    "all at once": {"jitter": 2, "skips": 0.3, "noise": 0.2, "expiry": 2},
}


@pytest.mark.parametrize("name", LABELS)
def test_a_broken_run_continues_bit_for_bit(pool_run, results, name):
    labels = {"budget": 20, **LABELS[name]}
    whole, broken = pool_run("whole", labels=labels), pool_run("broken", labels=labels)
    run_experiment(whole)
    stopped(broken, 0, crash)  # before the first snapshot
    _, observer = stopped(broken, 1, crash, resume=True)  # its line is written, its state is not
    assert observer.seen == [0, 1, "closed"]
    _, observer = stopped(broken, 1, press_ctrl_c, resume=True)
    assert observer.seen == [1, "closed"]
    again = At(None, crash)
    run_experiment(broken, resume=True, callbacks=RunCallbacks(observers=lambda *_: [again]))

    assert again.seen == [2, "closed"]
    assert results(broken.report.folder) == results(whole.report.folder)


def test_ctrl_c_in_the_last_round_leaves_only_the_figures_to_do(pool_run, results):
    whole, broken = pool_run("whole"), pool_run("broken")
    run_experiment(whole)
    stop, _ = stopped(broken, ROUNDS - 1, press_ctrl_c)
    assert "--resume" in str(stop)
    assert (broken.report.folder / SNAPSHOT).exists()

    run_experiment(broken, resume=True)

    assert results(broken.report.folder) == results(whole.report.folder)


def test_a_finished_run_is_not_run_again_unless_it_is_replaced(pool_run):
    experiment = pool_run()
    end = run_experiment(experiment)

    assert run_experiment(experiment, resume=True) == end
    with pytest.raises(SettingError, match="already holds a run"):
        run_experiment(experiment)
    again = run_experiment(pool_run(labels={"budget": 5}), replace=True)
    assert again["labels"] == 5


def test_other_settings_or_models_do_not_resume_a_run(pool_run):
    experiment = pool_run()
    stopped(experiment, 1, crash)
    with pytest.raises(StateError, match=r"pool\.updates"):
        run_experiment(pool_run(pool={**POOL, "updates": 4}), resume=True)

    pretend_another_model(experiment.report.folder)
    with pytest.raises(StateError, match="another source model"):
        run_experiment(experiment, resume=True)


def test_late_answers_after_the_last_round_are_waited_for_on_request(pool_run):
    labels = {"budget": 20, "delay": 5}

    dropped = run_experiment(pool_run("dropped", labels=labels))
    waited = run_experiment(pool_run("waited", labels={**labels, "wait": 30.0}))

    assert (dropped["labels"], dropped["updates"]) == (0, 0)
    assert (waited["labels"], waited["updates"]) == (20, 3)


def test_a_pool_and_a_method_exclude_each_other(pool_run):
    with pytest.raises(SettingError, match=r"either a \[method\].* or a \[pool\]"):
        run_experiment(pool_run(method={"name": "tent"}))


def test_the_rounds_need_a_limited_budget(pool_run):
    with pytest.raises(SettingError, match="the budget must have a limit"):
        run_experiment(pool_run(labels={"budget": "unlimited"}))


def test_mistakes_in_the_table_are_named():
    with pytest.raises(SettingError, match=r"unknown setting pool\.round\. Did you mean 'rounds'"):
        parse_experiment({"pool": {"round": 3}})
    with pytest.raises(SettingError, match=r"pool\.rounds must be .*, got 0"):
        parse_experiment({"pool": {"rounds": 0}})
    with pytest.raises(SettingError, match=r"pool\.selector must be .*, got 3"):
        parse_experiment({"pool": {"selector": 3}})
    with pytest.raises(SettingError, match=r"pool must be a table.*, got 3"):
        parse_experiment({"pool": 3})


@pytest.mark.parametrize("labels", [{"per_1000": 5.0}, {"spread_over": 100}])
def test_a_pace_is_refused_because_the_rounds_set_it(labels):
    experiment = parse_experiment({"pool": {"rounds": 3}, "labels": labels})

    with pytest.raises(SettingError, match="the rounds set the pace"):
        check_pool(experiment, experiment.pool)


def test_what_a_pool_is_called():
    def label(**pool):
        return parse_experiment({"pool": pool}).label

    assert Experiment().label == "simatta"
    assert label() == "pool, uniform"
    assert label(selector={"inits": 1}) == "pool, incremental"
    assert label(selector="clue", label="CLUE") == "CLUE"
