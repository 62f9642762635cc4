import signal
import time
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from attakit.bench.run import RunCallbacks, run_experiment
from attakit.bench.run_folder import DONE, OLD_SNAPSHOT, SNAPSHOT
from attakit.build.data import load_task
from attakit.build.models import digits_model
from attakit.errors import AttaError, SettingError, StateError
from attakit.methods import SourceOnly
from attakit.nn import SmallCNN
from attakit.nn.weights import save_weights
from attakit.processes.interrupt import Interrupted
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.pictures import PICTURES_FILE
from attakit.report.runs import read_run
from attakit.settings.experiment import MethodTable
from attakit.settings.load import parse_experiment
from interruptions import At, Crash, crash, press_ctrl_c, pretend_another_model, stopped

STEPS = 8


def test_a_run_writes_one_line_per_step_and_the_figures_of_the_whole(small_run):
    experiment = small_run(report={"source_every": 4, "post_adaptation": True})
    end = run_experiment(experiment)
    run = read_run(experiment.report.folder)
    assert [line["step"] for line in run.steps] == list(range(STEPS))
    assert run.experiment["stream"]["targets"] == ["outline"]
    assert {"attakit", "torch", "python", "threads", "model"} <= run.environment.keys()
    for line in run.steps:
        assert {"accuracy", "asked", "received", "entropy", "seconds", "memory_mb"} <= line.keys()
        assert line["received"] <= 20
    measured = [line["step"] for line in run.steps if "source_accuracy" in line]
    assert measured == [0, 4, 7]
    assert 0 <= run.before["source_accuracy"] <= 100
    assert {"kind": "end", **end} == run.end
    assert 0 < end["labels"] == run.steps[-1]["received"] <= 20
    assert end["updates"] == sum(line["updates"] for line in run.steps)
    right = sum(line["correct"] for line in run.steps)
    assert end["stream_accuracy"] == pytest.approx(100 * right / 160)
    assert 0 <= end["source_accuracy"] <= 100
    assert end["post_adaptation"].keys() == {"outline"}
    assert end["post_adaptation_unlabelled"].keys() == {"outline"}
    names = {path.name for path in experiment.report.folder.iterdir()}
    assert names == {STEPS_FILE, PICTURES_FILE, DONE}


class SlowToBuild(SourceOnly):
    """Does its work before the first step, and less of it each time."""

    pauses: ClassVar = []

    def __init__(self, model):
        super().__init__(model)
        time.sleep(self.pauses.pop(0))


@pytest.fixture
def slow_to_build(small_run, monkeypatch):
    """A run of such a method, with the seconds it takes each time it is built."""

    def make(*pauses):
        monkeypatch.setattr(SlowToBuild, "pauses", [*pauses])
        method = MethodTable(name=f"{__name__}:SlowToBuild")
        return small_run().model_copy(update={"method": method})

    return make


def test_the_time_until_a_method_is_built_is_told_apart(slow_to_build):
    experiment = slow_to_build(0.2)
    end = run_experiment(experiment)
    assert end["setup_seconds"] >= 0.2
    steps = read_run(experiment.report.folder).steps
    assert end["seconds"] == pytest.approx(sum(line["seconds"] for line in steps))


def test_a_run_that_goes_on_counts_its_first_building(slow_to_build):
    experiment = slow_to_build(0.3, 0.0)
    stopped(experiment, 4, press_ctrl_c)
    assert run_experiment(experiment, resume=True)["setup_seconds"] >= 0.3


def test_labelled_samples_are_left_out_where_the_unlabelled_are_scored(small_run):
    experiment = small_run(
        method={"high_entropy_bound": 0.0, "include_bound": True, "selector": {"name": "uniform"}},
        labels={"budget": "unlimited"},
        report={"post_adaptation": True},
    )
    scored = {}

    def callbacks(stream, accuracy, start):
        scored["all"] = len(stream.truth.labels)
        return []

    end = run_experiment(experiment, callbacks=RunCallbacks(observers=callbacks))

    with_all = end["post_adaptation"]["outline"] * scored["all"] / 100
    without = end["post_adaptation_unlabelled"]["outline"] * (scored["all"] - end["labels"]) / 100
    assert end["labels"] > 0
    assert without == pytest.approx(round(without))
    assert 0 <= with_all - without <= end["labels"]


def test_scoring_is_told_before_and_after_the_stream(small_run, all_digits):
    told = []
    callbacks = RunCallbacks(scoring=lambda done, total: told.append((done, total)))
    run_experiment(
        small_run(report={"post_adaptation": True, "source_every": 9}), callbacks=callbacks
    )

    held_out = len(all_digits.source_test)
    assert told.index((held_out, held_out)) < len(told) - 1
    assert told[-1][0] == told[-1][1] > held_out + len(all_digits.source_train)


def test_a_run_gives_back_the_threads_it_was_given(small_run):
    before = torch.get_num_threads()
    counted = []

    def look(*_):
        counted.append(torch.get_num_threads())
        return []

    run_experiment(small_run(threads=before + 1), callbacks=RunCallbacks(observers=look))

    assert counted == [before + 1]
    assert torch.get_num_threads() == before


def test_the_whole_source_counts_what_was_trained_on(small_run, all_digits):
    end = run_experiment(
        small_run(report={"post_adaptation": True}).model_copy(
            update={"method": MethodTable(name="source_only")}
        )
    )
    trained, held_out = len(all_digits.source_train), len(all_digits.source_test)

    right = end["source_accuracy_whole"] * (trained + held_out) / 100
    assert right == pytest.approx(round(right))
    assert end["source_accuracy_whole"] > end["source_accuracy"]


def test_runs_that_met_the_same_samples_in_the_same_order_have_the_same_fingerprint(small_run):
    changes = {
        "first": {},
        "smaller batches": {"stream": {"batch_size": 16}},
        "another order": {"seed": 1},
    }
    for name, tables in changes.items():
        run_experiment(small_run(name, **tables))
    first, smaller, other = (
        read_run(small_run(name).report.folder).environment for name in changes
    )
    assert first["stream"] == smaller["stream"] != other["stream"]
    assert first["model"] == smaller["model"] == other["model"]


def test_a_run_away_from_home_says_what_one_at_home_says(small_run, tmp_path):
    home, away = small_run("home"), tmp_path / "away"
    weights = tmp_path / "source.safetensors"
    save_weights(digits_model(load_task(home.stream)), weights)
    run_experiment(home)
    end = run_experiment(home, folder=away, weights=weights)
    (one, other) = read_run(home.report.folder), read_run(away)
    assert one.experiment == other.experiment
    assert one.environment == other.environment
    assert one.end["stream_accuracy"] == end["stream_accuracy"]


def test_less_is_measured_on_request(small_run):
    experiment = small_run(report={"pictures": False})
    end = run_experiment(experiment)
    run = read_run(experiment.report.folder)
    assert not any("source_accuracy" in line for line in run.steps)
    assert run.before == {}
    assert "post_adaptation" not in end
    assert not (experiment.report.folder / PICTURES_FILE).exists()


def test_two_runs_are_equal(small_run, results):
    first, second = small_run("first"), small_run("second")
    run_experiment(first)
    run_experiment(second)
    assert results(first.report.folder) == results(second.report.folder)


def test_a_folder_with_a_run_is_not_overwritten(small_run):
    experiment = small_run()
    run_experiment(experiment)
    before = (experiment.report.folder / STEPS_FILE).read_bytes()
    with pytest.raises(SettingError, match=r"already holds a run.*--resume.*--replace"):
        run_experiment(experiment)
    assert (experiment.report.folder / STEPS_FILE).read_bytes() == before


def test_replacing_a_run_leaves_other_files_alone(small_run):
    experiment = small_run()
    run_experiment(experiment)
    notes = experiment.report.folder / "notes.txt"
    notes.write_text("mine")
    other = experiment.report.folder / "other" / STEPS_FILE
    other.parent.mkdir()
    other.write_text("another run")
    again = small_run(seed=5)
    run_experiment(again, replace=True)
    assert read_run(again.report.folder).seed == 5
    assert (notes.read_text(), other.read_text()) == ("mine", "another run")


def test_a_run_that_cannot_be_built_replaces_nothing(small_run, results):
    experiment = small_run()
    run_experiment(experiment)
    before = results(experiment.report.folder)
    wrong = small_run(method={"name": "tent"})
    with pytest.raises(SettingError, match="unknown setting"):
        run_experiment(wrong, replace=True)
    assert results(experiment.report.folder) == before


def test_resuming_and_replacing_exclude_each_other(small_run):
    with pytest.raises(SettingError, match="either resumed or replaced"):
        run_experiment(small_run(), resume=True, replace=True)


def test_there_must_be_something_to_resume(small_run):
    with pytest.raises(StateError, match=r"no run in .*Start it without --resume"):
        run_experiment(small_run(), resume=True)


def test_a_results_folder_that_is_a_file_is_named(small_run, tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(AttaError, match=r"report\.folder: .*cannot be created"):
        run_experiment(small_run())


def test_a_finished_run_is_not_run_again(small_run, results):
    experiment = small_run()
    end = run_experiment(experiment)
    before = results(experiment.report.folder)
    assert run_experiment(experiment, resume=True) == end
    assert results(experiment.report.folder) == before


def test_a_run_marked_as_done_without_its_end_is_named(small_run):
    experiment = small_run()
    stopped(experiment, 2, crash)
    (experiment.report.folder / DONE).touch()
    with pytest.raises(StateError, match=r"no end line.*--replace"):
        run_experiment(experiment, resume=True)


@pytest.mark.parametrize("finished", [True, False])
def test_other_settings_do_not_resume_a_run(small_run, finished):
    if finished:
        run_experiment(small_run())
    else:
        stopped(small_run(), 4, crash)
    other = small_run(seed=1, labels={"budget": 21}, method={"trainer": {"lr": 0.5}})
    with pytest.raises(StateError, match=r"labels\.budget, method\.trainer\.lr.*seed"):
        run_experiment(other, resume=True)


def test_another_source_model_does_not_resume_a_run(small_run, tmp_path):
    experiment = small_run()
    stopped(experiment, 4, crash)
    pretend_another_model(experiment.report.folder)
    with pytest.raises(StateError, match="started from another source model"):
        run_experiment(experiment, resume=True)


def test_a_damaged_snapshot_is_named(small_run):
    experiment = small_run()
    stopped(experiment, 4, crash)
    (experiment.report.folder / SNAPSHOT).write_bytes(b"half")
    with pytest.raises(StateError, match="damaged"):
        run_experiment(experiment, resume=True)


def test_a_snapshot_of_an_older_version_says_what_to_do(small_run):
    experiment = small_run()
    stopped(experiment, 4, crash)
    old = experiment.report.folder / OLD_SNAPSHOT
    (experiment.report.folder / SNAPSHOT).rename(old)

    with pytest.raises(StateError, match=r"older version .* delete snapshot\.pt"):
        run_experiment(experiment, resume=True)

    old.unlink()
    assert run_experiment(experiment, resume=True)["labels"] > 0


def test_what_only_concerns_the_report_may_change(small_run):
    stopped(small_run(), 4, crash)
    run_experiment(small_run(report={"source_every": 1}), resume=True)


def test_ctrl_c_ends_the_run_after_the_step_and_saves_it(small_run):
    experiment = small_run()
    stop, observer = stopped(experiment, 3, press_ctrl_c)
    assert "--resume" in str(stop)
    assert str(experiment.report.folder) in str(stop)
    assert observer.seen == [0, 1, 2, 3, "closed"]
    assert (experiment.report.folder / SNAPSHOT).exists()
    again = At(None, crash)
    run_experiment(experiment, resume=True, callbacks=RunCallbacks(observers=lambda *_: [again]))
    assert again.seen == [4, 5, 6, 7, "closed"]


def test_a_second_ctrl_c_ends_the_run_at_once(small_run):
    experiment = small_run()

    def twice():
        press_ctrl_c()
        press_ctrl_c()

    stop, observer = stopped(experiment, 3, twice)
    assert isinstance(stop, Interrupted)
    assert observer.seen == [0, 1, 2, 3, "closed"]
    run_experiment(experiment, resume=True)


def test_ctrl_c_means_what_it_meant_before_when_the_run_is_over(small_run):
    before = signal.getsignal(signal.SIGINT)
    stopped(small_run(), 3, press_ctrl_c)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_person_who_leaves_in_the_middle_is_not_asked_again_what_was_answered(
    small_run, monkeypatch, results
):
    labels = {"budget": 12, "oracle": "ask"}
    method = {"high_entropy_bound": 0.0, "selector": {"inits": 1}}
    whole, broken = (small_run(name, labels=labels, method=method) for name in ("whole", "broken"))
    asked = []

    def answer():
        asked.append(1)
        if len(asked) == stop_at:
            raise KeyboardInterrupt
        return "3"

    monkeypatch.setattr("builtins.input", answer)
    stop_at = None
    run_experiment(whole)
    wanted = len(asked)
    stop_at = len(asked) + 6
    with pytest.raises(Interrupted, match="--resume"):
        run_experiment(broken)
    steps = len(read_run(broken.report.folder).steps)
    assert steps > 0
    run_experiment(broken, resume=True)
    assert results(broken.report.folder) == results(whole.report.folder)
    again = len(asked) - 2 * wanted
    assert again <= 4  # only those of the step in which the person left


LABELS = {
    "instant": {},
    "late": {"delay": 2, "jitter": 2},
    "unwilling": {"skips": 0.4},
    "wrong": {"noise": 0.4},
    "giving up": {"delay": 1, "jitter": 3, "expiry": 2},
    "all at once": {"delay": 1, "jitter": 2, "skips": 0.2, "noise": 0.2, "expiry": 3},
    "yes or no": {
        "question": "yes_no",
        "yes_no_price": 0.3,
        **{"delay": 1, "jitter": 2, "skips": 0.2, "noise": 0.2, "expiry": 3},
    },
}


@pytest.mark.parametrize("name", LABELS)
def test_a_broken_run_continues_bit_for_bit_with_any_oracle(small_run, name, results):
    labels = {"budget": 20, **LABELS[name]}
    whole, broken = small_run("whole", labels=labels), small_run("broken", labels=labels)
    run_experiment(whole)
    stopped(broken, 1, crash)  # before the first snapshot
    stopped(broken, 4, crash, resume=True)  # after a snapshot, some lines ahead of it
    stopped(broken, 6, press_ctrl_c, resume=True)
    run_experiment(broken, resume=True)
    assert results(broken.report.folder) == results(whole.report.folder)


def test_yes_no_questions_cost_their_price_and_are_counted(small_run):
    labels = {"budget": 5, "question": "yes_no", "yes_no_price": 0.25}
    experiment = small_run(labels=labels, method={"high_entropy_bound": 0.0})
    end = run_experiment(experiment)
    lines = read_run(experiment.report.folder).steps
    assert 5 < end["labels"] <= 20
    assert end["cost"] == end["labels"] / 4 <= 5
    assert end["answers"].keys() == {"yes", "no"}
    assert sum(end["answers"].values()) == end["labels"] == lines[-1]["received"]
    assert lines[-1]["remaining"] == 5 - lines[-1]["cost"]


METHODS = {
    "source only": {"name": "source_only"},
    "tent": {"name": "tent", "lr": 0.01},
    "eata": {"name": "eata", "lr": 0.01},
    "sar, starting over": {"name": "sar", "lr": 0.01, "reset_below": 0.3},
    "simatta, running statistics": {
        "name": "simatta",
        "norm": "running",
        "trainer": {"name": "balanced", "max_updates": 3, "fresh_optimizer": False},
    },
    "simatta, bounded": {
        "name": "simatta",
        "low_entropy_bound": 0.5,
        "high_entropy_bound": 0.1,
        "low_entropy_capacity": 10,
        "trainer": {"max_updates": 3},
    },
}


def test_a_run_hands_in_what_the_model_was_trained_on(small_run):
    losses = []
    for folder, alpha in (("held", 2000.0), ("free", 0.0)):
        table = MethodTable(name="eata", lr=0.01, fisher_alpha=alpha)
        experiment = small_run(folder).model_copy(update={"method": table})
        run_experiment(experiment)
        steps = read_run(experiment.report.folder).steps
        losses.append([line["step_numbers"]["loss"] for line in steps])
    # The first step starts where the regulariser is zero; without source inputs it always is.
    assert losses[0][0] == losses[1][0]
    assert losses[0][1] != losses[1][1]


@pytest.mark.parametrize("name", METHODS)
def test_a_broken_run_continues_bit_for_bit_with_any_method(small_run, name, results):
    whole, broken = (
        small_run(folder).model_copy(update={"method": MethodTable(**METHODS[name])})
        for folder in ("whole", "broken")
    )
    run_experiment(whole)
    stopped(broken, 4, crash)
    run_experiment(broken, resume=True)
    assert results(broken.report.folder) == results(whole.report.folder)


@pytest.mark.parametrize("step", [0, STEPS - 1])
def test_a_run_may_be_stopped_at_its_first_and_last_step(small_run, step, results):
    whole, broken = small_run("whole"), small_run("broken")
    run_experiment(whole)
    stopped(broken, step, press_ctrl_c)
    run_experiment(broken, resume=True)
    assert results(broken.report.folder) == results(whole.report.folder)


def test_a_run_killed_between_its_last_line_and_its_mark_ends_the_same(
    small_run, monkeypatch, results
):
    whole, broken = small_run("whole"), small_run("broken")
    run_experiment(whole)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "touch", lambda path: crash())
        with pytest.raises(Crash):
            run_experiment(broken)
    assert read_run(broken.report.folder).is_finished
    run_experiment(broken, resume=True)
    assert results(broken.report.folder) == results(whole.report.folder)


def test_late_answers_after_the_stream_are_waited_for_on_request(small_run):
    labels = {"budget": 20, "delay": 12}
    dropped = run_experiment(small_run("dropped", labels=labels))
    waited = run_experiment(small_run("waited", labels={**labels, "wait": 30.0}))
    assert (dropped["labels"], waited["labels"]) == (0, waited["asked"])
    assert (dropped["updates"], waited["updates"]) == (0, 3)


def test_images_in_folders_are_run_on_with_or_without_held_out_source(image_tree, tmp_path):
    save_weights(SmallCNN(classes=2, channels=3), tmp_path / "model.safetensors")
    for held_out in (0.0, 0.5):
        folder = tmp_path / f"run-{held_out}"
        experiment = parse_experiment(
            {
                "stream": {
                    "name": "folders",
                    "root": str(image_tree),
                    "source": "photo",
                    "size": 16,
                    "batch_size": 10,
                    "held_out": held_out,
                },
                "model": {"weights": str(tmp_path / "model.safetensors")},
                "report": {"folder": str(folder), "source_every": 1},
            }
        )
        end = run_experiment(experiment)
        assert ("source_accuracy" in end) == (held_out > 0)
        assert end["segments"].keys() == end["post_adaptation"].keys() == {"sculpture", "sketch"}
        assert (folder / PICTURES_FILE).stat().st_size > 0
