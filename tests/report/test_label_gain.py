"""One sentence about what labels are worth."""

import pytest

from attakit.report import RunRecord, compare, render_tables
from attakit.report.label_gain import label_gain
from attakit.report.summaries import summarise
from attakit.report.tables import method_table


def run(label, accuracy, labels=0, *, seed=0, **experiment):
    end = {"kind": "end", "stream_accuracy": accuracy, "labels": labels}
    return RunRecord({"seed": seed, "label": label, **experiment}, {}, [], [], [], end)


UNIFORM = {"method": {"name": "simatta", "selector": {"name": "uniform"}}}
SIMATTA, TENT = run("simatta", 80.04, 150), run("tent", 65.0)
BATCH_NORM, RANDOM = run("batch norm", 71.0), run("random labels", 78.0, 150, **UNIFORM)


def test_labels_no_labels_and_random_labels_are_compared():
    assert label_gain([SIMATTA, TENT, BATCH_NORM, RANDOM]) == (
        "With 150 labels simatta is at 80.0 %; without labels batch norm is at 71.0 %; "
        "random labels are at 78.0 %. The labels gain 9.0 points."
    )


def test_parts_that_were_not_run_are_left_out():
    assert label_gain([SIMATTA, RANDOM]) == (
        "With 150 labels simatta is at 80.0 %; random labels are at 78.0 %."
    )
    assert "random" not in label_gain([SIMATTA, TENT])


@pytest.mark.parametrize("runs", [[], [SIMATTA], [TENT, BATCH_NORM], [RANDOM, TENT]])
def test_without_a_comparison_nothing_is_said(runs):
    assert label_gain(runs) == ""


def test_labels_that_make_things_worse_are_said_to_be_worth_nothing():
    sentence = label_gain([run("simatta", 60.0, 250), BATCH_NORM])

    assert sentence.endswith("The labels gain nothing: without them it is 11.0 points better.")
    assert label_gain([run("simatta", 71.0, 9), BATCH_NORM]).endswith("The labels gain nothing.")


def test_a_method_that_loses_with_statistics_of_the_source_is_told_to_blend_them():
    frozen = run("simatta", 60.0, 250, method={"name": "simatta", "norm": "frozen"})

    assert label_gain([frozen, BATCH_NORM]).endswith(' Try norm = "blended" for simatta.')
    assert "norm =" not in label_gain([frozen, run("batch norm", 55.0)])
    assert "norm =" not in label_gain([run("simatta", 60.0, 250), BATCH_NORM])


def test_random_labels_that_do_better_are_named():
    better = run("random labels", 84.0, 150, **UNIFORM)

    assert label_gain([SIMATTA, better]).endswith("Choosing at random is 4.0 points better.")


def test_figures_are_means_over_seeds():
    runs = [run("simatta", 80.0, 100), run("simatta", 82.0, 140, seed=1), run("tent", 70.0)]

    assert label_gain(runs).startswith("With 120 labels simatta is at 81.0 %")


def test_the_control_with_the_nearest_number_of_labels_is_taken():
    controls = [
        run(f"{count} random", 70.0 + count / 100, count, **UNIFORM) for count in (20, 140, 300)
    ]

    assert "; 140 random labels are at 71.4 %" in label_gain([SIMATTA, *controls])


def test_the_control_is_the_same_method_where_there_is_one():
    enhanced = run("enhanced tent", 66.0, 150, method={"name": "enhanced"})
    simatta = run("simatta", 80.0, 150, method={"name": "simatta"})
    random = run("random labels", 76.0, 149, **UNIFORM)

    assert "149 random labels are at 76.0 %" in label_gain([enhanced, simatta, random])


def test_the_best_method_speaks_unless_another_is_named():
    other = run("anchor head", 85.0, 150)

    assert "anchor head is at 85.0" in label_gain([SIMATTA, other, TENT])
    assert "simatta is at 80.0" in label_gain([SIMATTA, other, TENT], subject="simatta")


def test_enhanced_methods_ask_at_random_unless_they_are_told_otherwise():
    enhanced = run("enhanced", 77.0, 150, method={"name": "enhanced"})

    assert "random labels are at 77.0 %" in label_gain([SIMATTA, enhanced])


def test_pools_and_runs_without_any_figure_say_nothing():
    pool = run("pool", 90.0, 150, pool={"rounds": 3})

    assert label_gain([pool, TENT]) == ""
    assert label_gain([SIMATTA, run("tent", None)]) == ""


@pytest.mark.parametrize("form", ["markdown", "latex", "rich"])
def test_tables_of_every_form_with_notes_say_it(form):
    (found,) = compare([SIMATTA, BATCH_NORM])

    assert "The labels gain 9.0" in " ".join(render_tables([found.table], form).split())


def test_another_method_that_wastes_its_labels_is_named():
    sentence = label_gain([SIMATTA, BATCH_NORM, run("anchor head", 61.2, 251)])

    assert sentence.endswith(
        " anchor head is at 61.2 % with 251 labels, below batch norm without any."
    )


def test_cheap_answers_are_said_with_their_cost_and_get_a_column():
    cheap = RunRecord(
        {"label": "simatta"}, {}, [], [], [], {"stream_accuracy": 80.0, "labels": 40, "cost": 10.0}
    )
    free = RunRecord(
        {"label": "tent"}, {}, [], [], [], {"stream_accuracy": 70.0, "labels": 0, "cost": 0}
    )

    assert label_gain([cheap, free]).startswith(
        "With 40 answers at the cost of 10.0 labels simatta is at 80.0 %"
    )
    titles = [column.title for column in method_table(summarise([cheap, free])).columns]
    assert titles == ["stream", "labels", "cost", "seconds"]
    assert "cost" not in [column.title for column in method_table(summarise([free])).columns]
