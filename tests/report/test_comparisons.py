from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from attakit.report import MeanStd, RunRecord, compare, method_table, print_table, render_tables


def run(label, accuracy=70.0, *, seed=0, model="a" * 64, finished=True, stream=None, **settings):
    experiment = {"seed": seed, "label": label, "stream": stream or {}, **settings}
    end = {"kind": "end", "stream_accuracy": accuracy} if finished else None
    return RunRecord(experiment, {"model": model}, [], [], [], end)


ORDERS = [
    run("tent", 70.0, stream={"order": "random", "name": "pacs"}),
    run("eata", 71.0, stream={"order": "random", "name": "pacs"}),
    run("tent", 60.0, stream={"order": "gradual", "name": "pacs"}),
]


def test_every_stream_has_a_table_named_after_what_sets_it_apart():
    found = compare(ORDERS)

    assert [one.title for one in found] == ["random stream", "gradual stream"]
    assert [[row.label for row in one.summaries] for one in found] == [["tent", "eata"], ["tent"]]


def test_titles_use_the_papers_words_for_orders_and_tell_what_else_differs():
    streams = [
        {"order": "domain_after_domain", "share": 0.5},
        {"order": "random", "share": 1.0},
        {"order": "random", "order_settings": {"splits": 2}, "share": 1.0},
    ]

    assert [one.title for one in compare([run("tent", stream=stream) for stream in streams])] == [
        "domain-wise stream, share = 0.5",
        "random stream, share = 1.0",
        "random (splits=2) stream, share = 1.0",
    ]


def test_a_setting_that_an_older_record_lacks_is_not_guessed():
    known, unknown = {"name": "pacs", "root": None, "severity": 5}, {"name": "pacs"}

    found = compare([run("tent", stream=known), run("tent", stream=unknown)])

    assert [one.title for one in found] == ["severity = 5", "severity not set"]
    assert (
        len(compare([run("tent", stream={**unknown, "root": None}), run("eata", stream=unknown)]))
        == 1
    )


def test_pools_have_a_table_of_their_own():
    stream = {"order": "domain_after_domain", "name": "pacs"}
    clue = [run("CLUE", seed=seed, stream=stream, pool={"rounds": 3}) for seed in (0, 1)]

    found = compare([*clue, run("tent", stream=stream)])

    assert [one.title for one in found] == ["pool", "domain-wise stream"]
    assert [[row.label for row in one.summaries] for one in found] == [["CLUE"], ["tent"]]


def test_a_single_stream_needs_no_name():
    (only,) = compare(ORDERS[:2])

    assert only.title is None
    assert only.notes == []


def test_methods_with_batches_of_their_own_stay_in_one_table():
    small = run("tent", stream={"batch_size": 16})
    large = run("simatta", stream={"batch_size": 100})

    (only,) = compare([small, large])

    assert [row.label for row in only.summaries] == ["tent", "simatta"]


def test_different_source_models_are_told():
    (only,) = compare([run("tent", model="a" * 64), run("eata", model="b" * 64)])

    assert only.notes == ["Source models DIFFER: aaaaaaaa, bbbbbbbb."]


def test_a_repeated_run_counts_once():
    (only,) = compare([run("tent", 70.0), run("tent", 70.0), run("tent", 72.0, seed=1)])

    assert [row.runs for row in only.summaries] == [2]
    assert only.notes == ["Left out: 1 that repeat settings, seed and model of another."]


def test_of_a_repeated_run_the_finished_one_counts():
    (only,) = compare([run("tent", finished=False), run("tent", 72.0)])

    assert only.summaries[0].stream == MeanStd(72.0)
    assert only.summaries[0].unfinished == 0


@pytest.mark.parametrize("form", ["markdown", "latex", "rich"])
def test_title_and_notes_are_written_with_the_table(form):
    table = method_table(compare(ORDERS)[0].summaries, "random stream", ["Mind this."])

    written = render_tables([table], form)

    assert "random stream" in written.splitlines()[0]
    assert "Mind this." in written


def test_in_csv_the_title_is_a_column():
    written = render_tables([compare(ORDERS)[0].table], "csv")

    lines = list(csv.DictReader(io.StringIO(written)))
    assert [(line["table"], line["method"]) for line in lines] == [
        ("random stream", "eata"),
        ("random stream", "tent"),
    ]


def test_the_best_method_comes_first_and_those_without_a_result_last():
    unfinished = replace(run("sar", stream=ORDERS[0].experiment["stream"]), end=None)

    table = compare([unfinished, *ORDERS[:2]])[0].table

    assert [row.label for row in table.rows] == ["eata", "tent", "sar"]


def test_signs_of_markup_in_a_title_are_shown_as_they_are(capsys):
    print_table(method_table(compare(ORDERS)[0].summaries, "name = [bold]", ["[red]note"]))

    shown = capsys.readouterr().out
    assert "name = [bold]" in shown
    assert "[red]note" in shown


def inapplicable(label, why="Net has no norm layers."):
    return replace(run(label, finished=False), inapplicable=why)


def test_methods_that_do_not_apply_have_a_row_of_their_own_and_a_note():
    (found,) = compare([run("simatta", 80.0), inapplicable("tent"), inapplicable("sar")])

    assert [row.label for row in found.summaries] == ["simatta"]
    assert found.inapplicable == ["tent", "sar"]
    assert found.notes == ["Does not apply: tent, sar (Net has no norm layers.)"]
    labels = [row.label for row in found.table.rows]
    assert labels == ["simatta", "tent (does not apply)", "sar (does not apply)"]


@pytest.mark.parametrize("form", ["markdown", "csv", "latex", "rich"])
def test_every_form_of_a_table_says_what_does_not_apply(form):
    (found,) = compare([run("simatta", 80.0), inapplicable("tent")])

    assert "tent (does not apply)" in render_tables([found.table], form)


def test_methods_that_do_not_apply_are_neither_unfinished_nor_another_model():
    (found,) = compare([run("a", 70.0), inapplicable("b"), inapplicable("b")])

    assert "not finished" not in render_tables([found.table], "rich")
    assert len(found.notes) == 1
