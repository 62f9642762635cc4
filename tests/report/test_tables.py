from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

from attakit.errors import SettingError
from attakit.report import (
    MeanStd,
    RunRecord,
    method_table,
    print_table,
    read_run,
    render_tables,
    summarise,
)


def run(label, seed, stream, *, source=None, end=True, steps=(), **figures):
    line = {"kind": "end", "stream_accuracy": stream, "source_accuracy": source, **figures}
    experiment = {"seed": seed, "label": label}
    return RunRecord(experiment, {}, [], [], list(steps), line if end else None)


def render(summaries, form="markdown"):
    return render_tables([method_table(summaries)], form)


RUNS = [
    run("tent", 1, 70.0, source=95.0, segments={"day": 80.0, "night": 60.0}, labels=0, seconds=1.0),
    run("tent", 2, 74.0, source=93.0, segments={"day": 82.0, "night": 66.0}, labels=0, seconds=3.0),
    run("a_b|c & 5%", 1, 90.0, source=94.0, segments={"day": 81.0}, labels=1200, seconds=8.0),
]


def test_figures_are_means_and_deviations_over_seeds():
    tent, other = summarise(RUNS)

    assert (tent.label, tent.runs, tent.unfinished) == ("tent", 2, 0)
    assert tent.stream == MeanStd(72.0, pytest.approx(2.8284, abs=1e-4))
    assert tent.segments["night"].mean == 63.0
    assert tent.source == MeanStd(94.0, pytest.approx(1.4142, abs=1e-4))
    assert tent.labels == MeanStd(0.0, 0.0)
    assert other.stream == MeanStd(90.0, None)
    assert "night" not in other.segments


def test_an_unfinished_run_counts_with_what_its_steps_tell():
    steps = [
        {"stream_accuracy": 50.0, "segments": {"day": [1, 2]}, "source_accuracy": 96.0},
        {"stream_accuracy": 75.0, "segments": {"day": [2, 2]}, "received": 5, "seconds": 0.5},
    ]

    (row,) = summarise([run("tent", 1, None, end=False, steps=steps)])

    assert row.unfinished == 1
    assert (row.stream, row.segments) == (MeanStd(75.0), {"day": MeanStd(75.0)})
    assert (row.source, row.labels, row.seconds) == (MeanStd(96.0), MeanStd(5.0), MeanStd(0.5))


def test_a_run_without_any_step_has_no_accuracy():
    (row,) = summarise([run("tent", 1, None, end=False)])

    assert row.stream is None
    assert "| tent |" in render([row])


def test_markdown_marks_the_best_and_escapes_bars():
    lines = render(summarise(RUNS)).splitlines()

    assert lines[0] == "| method | stream | day | night | source | labels | seconds | runs |"
    assert lines[2] == (
        "| tent | 72.0 ± 2.8 | **81.0 ± 1.4** | 63.0 ± 4.2 | **94.0 ± 1.4** "
        "| 0 ± 0 | 2.0 ± 1.4 | 2 |"
    )
    assert lines[3] == (r"| a_b\|c & 5% | **90.0** | **81.0** | – | **94.0** | 1,200 | 8.0 | 1 |")


@pytest.mark.parametrize("form", ["markdown", "csv", "latex", "rich"])
def test_memory_is_in_every_form(form):
    written = render(summarise([run("tent", 1, 70.0, peak_memory_mb=612.4)]), form)

    assert "MB" in written
    assert "612" in written


def test_a_narrow_terminal_has_no_room_for_memory():
    rows = summarise([run("tent", 1, 70.0, peak_memory_mb=612.4)])

    def printed(width):
        console = Console(file=io.StringIO(), width=width)
        print_table(method_table(rows), console=console)
        return console.file.getvalue()

    assert "MB: peak memory of the process" in " ".join(printed(140).split())
    assert "MB" not in printed(80)
    assert "612" not in printed(80)


def test_names_of_domains_are_never_broken_where_a_terminal_is_narrow():
    domains = {f"long_domain_{number}": 70.0 + number for number in range(8)}
    console = Console(file=io.StringIO(), width=80)

    print_table(method_table(summarise([run("tent", 1, 70.0, segments=domains)])), console=console)

    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert all(any(name in line for line in lines) for name in domains)
    assert sum(line.startswith("tent") for line in lines) > 1  # columns that do not fit go below


def test_a_run_that_is_not_finished_is_never_the_best():
    whole = [run("tent", 1, 70.0), run("eata", 1, 60.0)]
    steps = [{"kind": "step", "stream_accuracy": 99.0, "size": 1}]
    half = run("sar", 1, 99.0, end=False, steps=steps)

    table = method_table(summarise([*whole, half]))

    assert {row for row, _ in table.best()} == {0}


def test_csv_of_several_tables_is_one_block():
    other = [run("eata", 1, 60.0, segments={"dawn": 60.0})]
    tables = [method_table(summarise(RUNS), "first"), method_table(summarise(other), "second")]

    lines = list(csv.DictReader(io.StringIO(render_tables(tables, "csv"))))

    assert [(line["table"], line["method"]) for line in lines] == [
        ("first", "tent"),
        ("first", "a_b|c & 5%"),
        ("second", "eata"),
    ]
    assert [line["night"] for line in lines] == ["63.0", "", ""]
    assert [line["dawn"] for line in lines] == ["", "", "60.0"]
    assert [name for name in lines[0] if "std" not in name] == [
        *("table", "method", "stream", "day", "night", "dawn", "source", "labels", "seconds"),
        *("runs", "unfinished"),
    ]


def test_csv_keeps_full_precision_and_gives_deviations_their_own_column():
    tent, other = csv.DictReader(io.StringIO(render(summarise(RUNS), "csv")))

    assert float(tent["stream std"]) == pytest.approx(8**0.5)
    assert (other["method"], other["stream"], other["stream std"]) == ("a_b|c & 5%", "90.0", "")


def test_latex_escapes_its_special_signs():
    text = render(summarise(RUNS), "latex")

    assert r"a\_b|c \& 5\% & \textbf{90.0}" in text
    assert r"72.0 $\pm$ 2.8" in text
    assert text.startswith("\\begin{tabular}{lrrrrrrr}")


def test_a_terminal_table_shows_every_row():
    text = render(summarise(RUNS), "rich")

    assert "72.0 ± 2.8" in text
    assert "a_b|c & 5%" in text
    assert "over 1 to 2 runs" in text


def test_an_unknown_form_is_refused():
    with pytest.raises(SettingError, match="form must be one of markdown, csv, latex, rich"):
        render([], "word")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["markdown", "csv", "latex", "rich"])
def test_no_runs_give_an_empty_table(form):
    assert "method" in render(summarise([]), form)


def test_unfinished_runs_are_told():
    rows = summarise([run("tent", 1, 70.0), run("tent", 2, None, end=False)])

    assert "| 2 (1 unfinished) |" in render(rows)
    assert "tent: 1 of 2 not finished" in " ".join(render(rows, "rich").split())


def test_figures_of_real_files_agree_with_their_lines(make_run):
    folders = [make_run(f"run-{seed}", seed=seed) for seed in (1, 2)]

    (row,) = summarise([read_run(folder) for folder in folders])

    assert row.stream == MeanStd(pytest.approx(100 * 4 / 6), 0.0)
    assert row.source == MeanStd(91.5, pytest.approx(0.7071, abs=1e-4))
    assert row.after == {"day": MeanStd(50.0, 0.0)}
    assert set(row.segments) == {"day", "night"}
