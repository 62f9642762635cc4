from __future__ import annotations

import json
import math
import sys

import pytest

from attakit.errors import SettingError, StateError
from attakit.queries import Answer, Query
from attakit.records import Training
from attakit.report import Accuracy, JsonLines, read_run
from attakit.report.jsonlines import peak_memory_mb

EXPERIMENT = {"seed": 1, "method": {"name": "tent"}}
LABELS = {f"{step}-{place}": 0 for step in range(9) for place in range(4)}
SEGMENTS = dict.fromkeys(LABELS, "day")


def open_lines(path, **settings):
    return JsonLines(
        path,
        experiment=EXPERIMENT,
        environment={"torch": "2"},
        segments=["day"],
        classes=["a", "b", "c"],
        **settings,
    )


def write_steps(lines, make_step_result, steps):
    for step in steps:
        lines.on_step(make_step_result(step, [0, 0, 0, step % 2]))
    lines.close()


def test_a_line_holds_all_that_a_table_needs(tmp_path, make_step_result):
    lines = open_lines(tmp_path / "steps.jsonl", accuracy=Accuracy(LABELS, SEGMENTS))
    turn = make_step_result(
        0,
        [0, 0, 0, 1],
        asked=["0-3"],
        answers=[Answer(Query("0-3", 0), 0, "me")],
        numbers={"kept": 3.0},
        training=Training(7, {"loss": 0.5}),
        remaining=4,
    )

    lines.on_step(turn)
    line = read_run(tmp_path).steps[0]

    assert line["kind"] == "step"
    assert (line["step"], line["size"], line["correct"], line["counted"]) == (0, 4, 3, 4)
    assert line["accuracy"] == line["stream_accuracy"] == 75.0
    assert line["segments"] == {"day": [3, 4]}
    assert (line["asked"], line["received"], line["remaining"]) == (1, 1, 4)
    assert (line["step_numbers"], line["training"], line["updates"]) == (
        {"kept": 3.0},
        {"loss": 0.5},
        7,
    )
    assert line["seconds"] == 0.25
    probabilities = [math.exp(4) / (math.exp(4) + 2), 1 / (math.exp(4) + 2)]
    entropy = -sum(n * p * math.log(p) for n, p in zip((1, 2), probabilities, strict=True))
    assert line["entropy"] == pytest.approx(entropy, rel=1e-5)


def test_the_first_line_holds_experiment_and_environment(tmp_path, make_step_result):
    open_lines(tmp_path / "steps.jsonl").close()

    run = read_run(tmp_path / "steps.jsonl")

    assert run.experiment == EXPERIMENT
    assert run.environment == {"torch": "2"}
    assert (run.segments, run.classes) == (["day"], ["a", "b", "c"])
    assert run.steps == []
    assert not run.is_finished


def test_numbers_that_are_not_finite_become_null(tmp_path, make_step_result):
    lines = open_lines(tmp_path / "steps.jsonl")
    training = Training(1, {"loss": math.nan, "norm": math.inf})

    lines.on_step(make_step_result(0, [0], training=training, remaining=math.inf))

    line = json.loads((tmp_path / "steps.jsonl").read_text().splitlines()[1])
    assert line["training"] == {"loss": None, "norm": None}
    assert line["remaining"] is None
    assert line["accuracy"] is None


def test_extras_join_the_line(tmp_path, make_step_result):
    lines = open_lines(tmp_path / "steps.jsonl", extras=lambda turn: {"source_accuracy": 91.5})

    lines.on_step(make_step_result(0, [0]))

    assert read_run(tmp_path).steps[0]["source_accuracy"] == 91.5


def test_extras_may_not_replace_what_every_line_has(tmp_path, make_step_result):
    lines = open_lines(tmp_path / "steps.jsonl", extras=lambda turn: {"seconds": 1.0})

    with pytest.raises(SettingError, match="extras must not be named seconds"):
        lines.on_step(make_step_result(0, [0]))


def test_every_line_is_on_disk_before_the_next_step(tmp_path, make_step_result):
    lines = open_lines(tmp_path / "steps.jsonl")

    lines.on_step(make_step_result(0, [0]))

    assert len(read_run(tmp_path).steps) == 1


def test_a_resumed_file_equals_an_unbroken_one(tmp_path, make_step_result):
    def without_clock(path):
        return [{**line, "memory_mb": None} for line in read_run(path).steps]

    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    write_steps(open_lines(whole, accuracy=Accuracy(LABELS)), make_step_result, range(6))
    accuracy = Accuracy(LABELS)
    first = open_lines(broken, accuracy=accuracy)
    for step in range(3):
        first.on_step(make_step_result(step, [0, 0, 0, step % 2]))
    state = accuracy.state_dict()
    first.on_step(make_step_result(3, [1, 1, 1, 1]))
    first.end({"labels": 0})
    first.close()
    with broken.open("a") as file:
        file.write('{"kind": "step", "st')

    resumed = Accuracy(LABELS)
    resumed.load_state_dict(state)
    write_steps(open_lines(broken, accuracy=resumed, resume_after=2), make_step_result, range(3, 6))

    assert without_clock(broken) == without_clock(whole)
    assert read_run(broken).end is None


def test_resuming_before_the_first_step_keeps_the_head_only(tmp_path, make_step_result):
    path = tmp_path / "steps.jsonl"
    write_steps(open_lines(path), make_step_result, range(2))

    write_steps(open_lines(path, resume_after=-1), make_step_result, range(1))

    assert [line["step"] for line in read_run(path).steps] == [0]


def test_resuming_after_a_step_that_was_never_written_is_refused(tmp_path, make_step_result):
    path = tmp_path / "steps.jsonl"
    write_steps(open_lines(path), make_step_result, range(2))

    with pytest.raises(StateError, match="ends at step 1, so the run cannot resume after step 5"):
        open_lines(path, resume_after=5)


def test_resuming_a_missing_file_names_it(tmp_path):
    with pytest.raises(StateError, match=r"steps\.jsonl: cannot be read"):
        open_lines(tmp_path / "steps.jsonl", resume_after=3)


def test_opening_without_resuming_starts_anew(tmp_path, make_step_result):
    path = tmp_path / "steps.jsonl"
    write_steps(open_lines(path), make_step_result, range(3))

    write_steps(open_lines(path), make_step_result, range(1))

    assert len(read_run(path).steps) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the peak memory")
def test_peak_memory_is_in_megabytes():
    memory = peak_memory_mb()

    assert memory is not None
    assert 20 < memory < 200_000


def test_peak_memory_is_unknown_where_the_system_does_not_tell(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)

    assert peak_memory_mb() is None


def test_peak_memory_on_macos_counts_bytes(monkeypatch):
    here = peak_memory_mb()
    monkeypatch.setattr(sys, "platform", "darwin")

    assert here is not None
    assert peak_memory_mb() == pytest.approx(here / 1024, abs=1)
