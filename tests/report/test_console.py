from __future__ import annotations

import io

import pytest
from rich.console import Console

from attakit.errors import SettingError
from attakit.report import Accuracy, Progress, RunRecord, method_table, print_table, summarise
from attakit.report.console import WorkBar


@pytest.fixture
def terminal():
    return Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)


def test_progress_tells_accuracy_labels_and_steps(terminal, make_step_result):
    accuracy = Accuracy({"0-0": 0, "0-1": 1})
    progress = Progress("tent [seed 1]", steps=4, accuracy=accuracy, console=terminal)

    progress.on_step(make_step_result(0, [0, 0]))
    progress.close()

    text = terminal.file.getvalue()
    assert "tent [seed 1]" in text
    assert "50.0 % right · 0 labels" in text
    assert "1/4" in text


def test_a_resumed_run_begins_where_it_stopped(terminal, make_step_result):
    progress = Progress("tent", steps=4, done=2, console=terminal)

    progress.on_step(make_step_result(2, [0]))
    progress.close()

    assert "3/4" in terminal.file.getvalue()


def test_a_stream_of_unknown_length_has_a_bar_too(terminal, make_step_result):
    progress = Progress("tent", steps=None, console=terminal)

    progress.on_step(make_step_result(0, [0]))
    progress.close()

    assert "1/?" in terminal.file.getvalue()


def test_quiet_progress_prints_nothing(terminal, make_step_result):
    progress = Progress("tent", steps=4, quiet=True, console=terminal)

    progress.on_step(make_step_result(0, [0]))
    progress.close()

    assert terminal.file.getvalue() == ""


def test_a_negative_step_count_is_refused():
    with pytest.raises(SettingError, match="steps must be at least 0, got -1"):
        Progress("tent", steps=-1)


@pytest.mark.parametrize(("width", "shown"), [(80, False), (160, True)])
def test_a_narrow_terminal_leaves_out_all_deviations_but_that_of_the_stream(width, shown):
    terminal = Console(file=io.StringIO(), width=width)
    runs = [
        RunRecord(
            {"seed": seed, "label": "tent"},
            {},
            [],
            [],
            [],
            {"stream_accuracy": 70.0 + seed, "segments": {"day": 80.0 + 2 * seed}},
        )
        for seed in (1, 2)
    ]

    print_table(method_table(summarise(runs), "digits"), console=terminal)

    text = terminal.file.getvalue()
    assert "digits" in text
    assert "71.5 ± 0.7" in text
    assert ("83.0 ± 1.4" in text) is shown


def test_long_names_of_methods_leave_room_for_the_figures():
    terminal = Console(file=io.StringIO(), width=80)
    label = "simatta (labels.budget=30, labels.oracle=known, stream.batch_size=20)"
    segments = dict.fromkeys(("art_painting", "cartoon", "sketch"), 81.25)
    numbers = {"stream_accuracy": 70.0, "segments": segments}
    run = RunRecord({"seed": 1, "label": label}, {}, [], [], [], numbers)

    print_table(method_table(summarise([run])), console=terminal)

    text = terminal.file.getvalue()
    assert "70.0" in text
    assert text.count("81.2") == 3


def test_a_pipe_gets_lines_instead_of_a_bar():
    pipe = Console(file=io.StringIO(), width=100)

    with WorkBar("demo", total=3, console=pipe) as bar:
        for name in ("tent", "eata", "sar [1]"):
            bar.advance(name)

    assert pipe.file.getvalue().splitlines() == ["demo: 1/3 tent", "demo: 3/3 sar [1]"]


def test_a_quiet_bar_prints_nothing_to_a_pipe():
    pipe = Console(file=io.StringIO(), width=100)

    with WorkBar("demo", total=1, quiet=True, console=pipe) as bar:
        bar.advance()

    assert pipe.file.getvalue() == ""
