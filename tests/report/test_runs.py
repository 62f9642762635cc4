from __future__ import annotations

import json

import pytest

from attakit.errors import StateError
from attakit.report import RunRecord, read_run
from attakit.report.runs import INAPPLICABLE_FILE, find_runs, group_runs

HEAD = {"kind": "run", "format": 1, "experiment": {}, "environment": {}, "segments": []}


def write(path, *lines):
    texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines]
    path.write_text("".join(texts), encoding="utf-8")
    return path


def run(**experiment):
    return RunRecord(experiment, {}, [], [], [], None)


def test_a_run_is_read_from_its_folder(make_run):
    record = read_run(make_run(steps=4))

    assert len(record.steps) == 4
    assert record.is_finished
    assert (record.label, record.seed) == ("simatta", 1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "the file is empty"),
        (("\n\n",), "the file is empty"),
        (("name,age\n",), "line 1: not a JSON object with a 'kind'"),
        (({"a": 1}, {"b": 2}), "line 1: not a JSON object with a 'kind'"),
        (({"kind": "step", "step": 0},), "must begin with a line of kind 'run', got 'step'"),
        (({**HEAD, "format": 7},), "written in format 7; this version reads format 1"),
        (({**HEAD, "experiment": 3},), "line 1: 'experiment' is missing or is not a dict"),
        ((HEAD, '{"kind": "st\n', {"kind": "step", "step": 1}), "line 2: not a JSON object"),
        ((HEAD, {"kind": "step"}), "line 2: a step has no number"),
        (("\x00\xff\xfe binary",), "line 1: not a JSON object"),
    ],
)
def test_a_file_that_is_no_run_is_refused_by_line(tmp_path, lines, message):
    path = write(tmp_path / "steps.jsonl", *lines)

    with pytest.raises(StateError, match=message) as caught:
        read_run(path)

    assert "steps.jsonl" in str(caught.value)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(StateError, match="Give the folder of a run"):
        read_run(tmp_path)


def test_the_torn_last_line_of_a_live_run_is_left_out(tmp_path):
    path = write(tmp_path / "steps.jsonl", HEAD, {"kind": "step", "step": 0}, '{"kind": "step", ')

    assert [step["step"] for step in read_run(path).steps] == [0]


@pytest.mark.parametrize(
    ("experiment", "label"),
    [
        ({"label": "Ours", "method": {"name": "simatta"}}, "Ours"),
        ({"method": {"name": "simatta", "label": "SimATTA"}}, "SimATTA"),
        ({"method": {"name": "simatta"}}, "simatta"),
        ({"method": "tent"}, "tent"),
        ({}, "run"),
    ],
)
def test_a_label_is_found_in_the_experiment(experiment, label):
    assert run(**experiment).label == label


def test_runs_that_differ_in_seed_folder_and_weights_belong_together():
    runs = [
        run(seed=n, label="a", model={"weights": f"{n}.pt"}, report={"folder": f"out/{n}"})
        for n in range(3)
    ]

    groups = group_runs(runs)

    assert [(group.label, len(group.runs)) for group in groups] == [("a", 3)]


def test_runs_with_the_label_counts_of_different_partners_belong_together():
    runs = [
        run(seed=n, label="a", method={"name": "enhanced"}, labels={"budget": 9, "matched": n})
        for n in range(3)
    ]

    groups = group_runs(runs)

    assert [(group.label, len(group.runs)) for group in groups] == [("a", 3)]


def test_runs_of_a_version_without_a_setting_belong_to_those_with_its_default():
    runs = [run(seed=1, label="a", labels={}), run(seed=2, label="a", labels={"crowd": None})]

    assert [(group.label, len(group.runs)) for group in group_runs(runs)] == [("a", 2)]


def test_settings_of_the_method_are_named_without_their_table_and_defaults_as_such():
    runs = [run(seed=1, label="a", method={"name": "a", **own}) for own in ({"norm": "batch"}, {})]

    assert [group.label for group in group_runs(runs)] == ["a (norm batch)", "a (norm default)"]


def test_other_settings_make_another_group_whose_label_tells_them():
    runs = [
        run(seed=1, label="a", labels={"budget": 100}),
        run(seed=2, label="a", labels={"budget": 300}),
        run(seed=1, label="b"),
    ]

    labels = [group.label for group in group_runs(runs)]

    assert labels == ["a (labels.budget 100)", "a (labels.budget 300)", "b"]


def test_a_method_that_does_not_apply_is_read_from_its_mark(tmp_path):
    facts = {"experiment": {"method": {"name": "tent"}}, "message": "no norm layers"}
    (tmp_path / INAPPLICABLE_FILE).write_text(json.dumps(facts), encoding="utf-8")

    assert find_runs([tmp_path]) == [tmp_path]
    assert (read_run(tmp_path).label, read_run(tmp_path).inapplicable) == ("tent", "no norm layers")


def test_a_damaged_mark_is_named(tmp_path):
    (tmp_path / INAPPLICABLE_FILE).write_text("{}", encoding="utf-8")

    with pytest.raises(StateError, match=r"inapplicable\.json is damaged"):
        read_run(tmp_path)
