"""Step lines that are committed keep what tables need."""

import json

from slim_results import slim_runs

from attakit.report.runs import read_run

FIRST = {"kind": "run", "format": 1, "experiment": {}, "environment": {}, "segments": []}
STEP = {"kind": "step", "step": 0, "seconds": 0.123456, "training": {"loss": 2.0}, "correct": 3}
END = {"kind": "end", "stream_accuracy": 61.23456789}


def write(folder, *, done=True):
    folder.mkdir()
    lines = "".join(f"{json.dumps(line)}\n" for line in (FIRST, STEP, END))
    (folder / "steps.jsonl").write_text(lines)
    if done:
        (folder / "done").touch()


def test_a_step_is_shortened_and_the_end_stays(tmp_path):
    write(tmp_path / "run")
    size = slim_runs(tmp_path)
    assert size == (tmp_path / "run" / "steps.jsonl").stat().st_size
    found = read_run(tmp_path / "run")
    assert found.steps == [{"kind": "step", "step": 0, "seconds": 0.1235, "correct": 3}]
    assert found.end == END
    assert slim_runs(tmp_path) == size


def test_a_run_that_may_be_resumed_stays_as_it_is(tmp_path):
    write(tmp_path / "run", done=False)
    assert slim_runs(tmp_path) == 0
    assert read_run(tmp_path / "run").steps == [STEP]
