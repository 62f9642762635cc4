from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

from attakit.errors import SettingError, UnknownName
from attakit.paper import lay_out
from attakit.report import MeanStd, PaperNumber, print_table, render_tables
from attakit.report.lineup import line_up

CORRUPTIONS = ("brightness", "gaussian_noise", "motion_blur", "fog")


def cell(table, label, head):
    line = next(line for line in table.rows if line.label == label)
    return line.cells[[each.full_title for each in table.columns].index(head)]


def notes(table):
    return " ".join(table.notes)


def test_the_comparison_has_both_streams_side_by_side(make_comparison):
    (table,) = lay_out("tta", make_comparison())

    heads = [head.full_title for head in table.columns]
    assert heads[:4] == ["domain-wise now A", "domain-wise now C", "domain-wise now S",
                         "domain-wise now mean"]  # fmt: skip
    assert heads[4:12] == [
        *(f"domain-wise after {n}" for n in ("P", "P held out", "A", "C", "S", "no label")),
        "domain-wise labels",
        "domain-wise seconds",
    ]
    assert heads[12:17] == [f"random now {name}" for name in ("1", "2", "3", "4", "mean")]
    assert table.title == "TTA comparisons on PACS"


def test_rows_are_methods_and_budgets_in_the_papers_order(make_comparison):
    (table,) = lay_out("tta", make_comparison())

    names = [line.label for line in table.rows]
    assert names == ["Tent (steps=1)", "SimATTA (B ≤ 300)", "SimATTA (B ≤ 500)"]


def test_cells_average_seeds_and_name_the_papers_number(make_comparison):
    (table,) = lay_out("tta", make_comparison())

    found = cell(table, "SimATTA (B ≤ 300)", "domain-wise now C")
    assert found.figure == MeanStd(74.5, pytest.approx(0.5**0.5))
    assert found.paper == PaperNumber(70.90)
    assert cell(table, "SimATTA (B ≤ 500)", "random labels").figure == MeanStd(450.0, 0.0)
    assert cell(table, "SimATTA (B ≤ 500)", "random labels").paper == PaperNumber(425)
    assert cell(table, "Tent (steps=1)", "random after S").paper == PaperNumber(41.56)


def test_means_are_over_segments_in_both_lines(make_comparison):
    (table,) = lay_out("tta", make_comparison(seeds=(0,)))

    found = cell(table, "Tent (steps=1)", "domain-wise now mean")
    assert found.figure == MeanStd(61.0)
    assert found.paper.value == pytest.approx((67.29 + 64.59 + 44.67) / 3)


def test_a_method_that_never_asks_counts_once_whatever_its_budget(make_comparison):
    tent = next(e for e in line_up(make_comparison()) if e.label.startswith("Tent"))

    assert (tent.budget, tent.left_out) == (None, 0)
    assert {order: len(runs) for order, runs in tent.runs.items()} == {
        "domain_after_domain": 2,
        "random": 2,
    }


def test_whole_source_accuracy_takes_the_papers_number_from_the_held_out_one(make_suite_run):
    (held_out,) = lay_out("tta", [make_suite_run("EATA")])
    (whole,) = lay_out("tta", [make_suite_run("EATA", source_accuracy_whole=99.0)])

    assert cell(held_out, "EATA", "domain-wise after P held out").paper == PaperNumber(98.62)
    assert cell(whole, "EATA", "domain-wise after P").paper == PaperNumber(98.62)
    assert cell(whole, "EATA", "domain-wise after P held out").paper is None


def test_missing_cells_are_dashes(make_suite_run):
    runs = [make_suite_run("EATA"), make_suite_run("CoTTA", order="random", post_adaptation=None)]

    text = render_tables(lay_out("tta", runs), "markdown")

    cotta = next(line for line in text.splitlines() if line.startswith("| CoTTA"))
    assert cotta.startswith("| CoTTA | – | – | – | – |")
    assert "nan" not in text
    assert "None" not in text


def test_a_method_and_a_data_set_that_the_paper_lacks_have_no_second_line(make_suite_run):
    run = make_suite_run("mine", data_set="digits", domains=("day", "night"))

    (table,) = lay_out("tta", [run])

    assert not any(row.has_paper for row in table.rows)
    assert [head.title for head in table.columns][:3] == ["day", "night", "mean"]
    assert "paper" not in render_tables([table])


def test_budgets_are_told_where_one_method_has_several(make_suite_run):
    runs = [
        make_suite_run("mine", budget=budget, labels=budget, base=50.0 + budget)
        for budget in (20, 3)
    ]

    (table,) = lay_out("tta", runs)

    assert [line.label for line in table.rows] == ["mine (B ≤ 3)", "mine (B ≤ 20)"]


def test_data_sets_get_a_sheet_each(make_suite_run):
    sheets = lay_out("tta", [make_suite_run("EATA"), make_suite_run("EATA", data_set="digits")])

    assert [table.title for table in sheets] == ["TTA comparisons on PACS", "Comparison on digits"]


@pytest.mark.parametrize(("layout", "labels"), [("enhanced", 0), ("tta", 223)])
def test_tent_with_labels_is_never_compared_with_tent_without(make_suite_run, layout, labels):
    (table,) = lay_out(layout, [make_suite_run("Tent (steps=1)", labels=labels)])

    assert not any(found.paper for line in table.rows for found in line.cells)


def test_the_enhanced_layout_takes_its_numbers_from_its_own_table(make_suite_run):
    (table,) = lay_out("enhanced", [make_suite_run("Tent (steps=1)", labels=223)])

    found = cell(table, "Tent (steps=1)", "domain-wise now A")
    assert found.paper == PaperNumber(70.07)
    assert cell(table, "Tent (steps=1)", "domain-wise labels").paper == PaperNumber(300)


def test_ada_averages_over_seeds_and_streams(make_suite_run):
    runs = [
        make_suite_run("SimATTA", order=order, labels=223, base=base)
        for order, base in (("domain_after_domain", 70.0), ("random", 74.0))
    ]
    runs += [make_suite_run("CLUE", seed=seed, labels=300, base=72.0 + seed) for seed in (0, 1, 2)]

    (table,) = lay_out("ada", runs)

    assert [line.label for line in table.rows] == ["CLUE (B = 300)", "SimATTA (B ≤ 300)"]
    assert cell(table, "SimATTA (B ≤ 300)", "after A").figure.mean == 82.0
    text = render_tables([table])
    assert "| **83.0 (1.0)** | **84.0 (1.0)** | **85.0 (1.0)** |" in text
    assert "*83.97 (0.57)*" in text
    assert "from 2 to 3 runs" in notes(table)


def test_a_pool_run_without_a_stream_fits_the_ada_layout(make_suite_run):
    run = make_suite_run("Random", labels=300, stream_accuracy=None, segments=None)

    (table,) = lay_out("ada", [run])

    assert cell(table, "Random (B = 300)", "after S").figure == MeanStd(72.0)


def test_corruptions_count_seconds_on_noise_and_blur_only(make_suite_run):
    runs = [
        make_suite_run(label, data_set="tiny_imagenet_c", domains=CORRUPTIONS, base=20.0, labels=90)
        for label in ("EATA", "SimATTA (steps=10)")
    ]

    (table,) = lay_out("corruptions", runs)

    # Segments 1 and 2 take 0.75 and 1 second per batch of 100.
    seconds = cell(table, "EATA", "domain-wise s/10,000")
    assert seconds.figure == MeanStd(87.5)
    assert seconds.paper == PaperNumber(93.14)
    assert cell(table, "EATA", "domain-wise now brightness").paper is None
    # The paper leaves its source, brightness, out of the average.
    mean = cell(table, "SimATTA (step=10)", "domain-wise now mean")
    assert (mean.figure, mean.paper) == (MeanStd(22.0), PaperNumber(28.86))
    assert cell(table, "EATA", "domain-wise labels").paper == PaperNumber(4500)


def test_seconds_of_other_streams_are_over_all_images(make_suite_run):
    (table,) = lay_out("corruptions", [make_suite_run("EATA", data_set="digits")])

    assert cell(table, "EATA", "domain-wise s/10,000").figure == MeanStd(75.0)


def test_complete_results_follow_each_segment(make_suite_run):
    runs = [
        make_suite_run("SimATTA", order=order, labels=240, after_each=True)
        for order in ("domain_after_domain", "random")
    ]

    (table,) = lay_out("complete", runs)

    assert table.title == "SimATTA (B ≤ 300) on PACS"
    assert [line.label for line in table.rows] == [
        "current", "labels", "P", "P held out", "A", "C", "S"
    ]  # fmt: skip
    assert cell(table, "current", "domain-wise C").figure == MeanStd(61.0)
    assert cell(table, "current", "domain-wise before").figure is None
    assert cell(table, "labels", "domain-wise C").figure == MeanStd(160.0)
    assert cell(table, "labels", "domain-wise C").paper == PaperNumber(145)
    assert cell(table, "A", "domain-wise before").figure == MeanStd(50.0)
    assert cell(table, "A", "random before").paper == PaperNumber(59.38)
    assert cell(table, "A", "domain-wise C").figure == MeanStd(61.5)
    assert cell(table, "P", "random 2").figure == MeanStd(98.0)
    # At the end of the stream stands what the end line says.
    assert cell(table, "S", "domain-wise S").figure == MeanStd(72.0)
    assert cell(table, "S", "domain-wise S").paper == PaperNumber(81.52)


def test_complete_results_without_the_measurement_have_labels_and_dashes(make_suite_run):
    (table,) = lay_out("complete", [make_suite_run("mine", labels=120)])

    assert table.title == "mine on pacs"
    assert cell(table, "labels", "domain-wise art_painting").figure == MeanStd(40.0)
    assert cell(table, "cartoon", "domain-wise art_painting").figure is None
    assert cell(table, "cartoon", "domain-wise sketch").figure == MeanStd(71.0)


def test_an_unfinished_run_counts_with_what_it_has(make_suite_run):
    (table,) = lay_out("tta", [make_suite_run("EATA", finished=False)])

    assert cell(table, "EATA", "domain-wise now A").figure == MeanStd(60.0)
    assert "1 of all 1 not finished" in notes(table)


def test_the_conditions_are_told(make_comparison):
    told = notes(lay_out("tta", make_comparison())[0])

    assert "Source model 01234567 for all." in told
    assert "Batch sizes differ: 100 (SimATTA); 16 (Tent (steps=1))." in told
    assert "before the method learns" in told
    assert "Labels used: 250 of 300 (SimATTA); 450 of 500 (SimATTA); 0 (Tent (steps=1))." in told
    assert "the paper's table 2" in told
    assert "P: photo, A: art_painting" in told
    assert "Each figure is from 2 runs." in told


def test_unfair_conditions_are_told(make_suite_run):
    different = [make_suite_run("EATA"), make_suite_run("CoTTA", model="ffffffffff")]
    unknown = [make_suite_run("EATA", model="")]

    assert "Source models DIFFER: 01234567, ffffffff." in notes(lay_out("tta", different)[0])
    assert "not recorded" in notes(lay_out("tta", unknown)[0])
    assert "Batches of 100 for all." in notes(lay_out("tta", unknown)[0])


@pytest.mark.parametrize(("label", "labels"), [("SimATTA (B ≤ 300)", 9), ("EATA", 0)])
def test_runs_that_repeat_another_are_left_out_and_told(make_suite_run, label, labels):
    runs = [make_suite_run(label, labels=labels, base=base) for base in (60.0, 80.0)]

    (table,) = lay_out("tta", runs)

    assert cell(table, label, "domain-wise now A").figure == MeanStd(60.0)
    assert "Left out: 1 that repeat" in notes(table)


def test_streams_of_other_settings_get_a_sheet_each_named_by_what_differs(make_suite_run):
    shares = [make_suite_run("EATA", seed=n, stream={"share": n / 2}) for n in (1, 2)]

    sheets = lay_out("tta", [*shares, make_suite_run("EATA", data_set="digits")])

    assert [table.title for table in sheets] == [
        "TTA comparisons on PACS (share = 0.5)",
        "TTA comparisons on PACS (share = 1.0)",
        "Comparison on digits",
    ]
    assert not any("Left out" in notes(table) for table in sheets)


def test_orders_with_other_settings_stand_side_by_side(make_suite_run):
    stream = {"order_settings": {"splits": 2}}
    runs = [
        make_suite_run("EATA", order="random"),
        make_suite_run("EATA", order="random", base=70.0, stream=stream),
    ]

    (table,) = lay_out("tta", runs)

    assert cell(table, "EATA", "random now 1").figure == MeanStd(60.0)
    assert cell(table, "EATA", "random (splits=2) now 1").figure == MeanStd(70.0)


@pytest.mark.parametrize(("label", "labels"), [("SimATTA (B ≤ 300)", 9), ("EATA", 0)])
def test_batch_sizes_of_one_method_are_not_averaged(make_suite_run, label, labels):
    runs = [
        make_suite_run(label, labels=labels, batch_size=size, base=float(size), seed=seed)
        for size in (50, 16)
        for seed in (0, 1)
    ]

    (table,) = lay_out("tta", runs)

    names = [f"{label} (stream.batch_size={size})" for size in (50, 16)]
    assert [line.label for line in table.rows] == names
    assert cell(table, names[1], "domain-wise now A").figure == MeanStd(16.0, 0.0)
    assert cell(table, names[1], "domain-wise now A").paper is not None
    assert "Left out" not in notes(table)


def test_a_run_from_another_source_model_is_no_repeat(make_suite_run):
    runs = [
        make_suite_run("EATA", model=model, base=base)
        for model, base in zip("ab", (60.0, 80.0), strict=True)
    ]

    (table,) = lay_out("tta", runs)

    assert cell(table, "EATA", "domain-wise now A").figure.mean == 70.0
    assert "Source models DIFFER: a, b." in notes(table)
    assert "Left out" not in notes(table)


def test_of_a_repeated_run_the_finished_one_is_laid_out(make_suite_run):
    (table,) = lay_out("tta", [make_suite_run("EATA", finished=False), make_suite_run("EATA")])

    assert "not finished" not in notes(table)


@pytest.mark.parametrize("layout", ["tta", "enhanced", "corruptions", "complete"])
def test_layouts_of_streams_leave_pools_out_and_say_so(make_suite_run, layout):
    pools = [make_suite_run("CLUE", labels=300, pool=True, seed=seed) for seed in (0, 1)]

    (table,) = lay_out(layout, [*pools, make_suite_run("EATA")])

    assert "CLUE" not in render_tables([table])
    assert "Left out: 2 runs over a pool; the layout ada shows them." in notes(table)
    with pytest.raises(SettingError, match=r"all 2 runs are over a pool.*'ada'"):
        lay_out(layout, pools)


def test_the_layout_of_pools_has_them_beside_streams(make_suite_run):
    runs = [make_suite_run("CLUE", labels=300, pool=True), make_suite_run("SimATTA", labels=223)]

    (table,) = lay_out("ada", runs)

    assert [line.label for line in table.rows] == ["CLUE (B = 300)", "SimATTA (B ≤ 300)"]
    assert "over a pool" not in notes(table)


def test_latex_groups_columns_and_escapes_signs(make_suite_run):
    runs = [make_suite_run("a_b & 5%", base=80.0), make_suite_run("EATA")]

    text = render_tables(lay_out("tta", runs), "latex")

    assert r"\multicolumn{4}{c}{domain-wise now}" in text
    assert r"\cmidrule(lr){2-5}" in text
    assert r"a\_b \& 5\% & \textbf{80.0}" in text
    assert r"\textit{paper} & \textit{67.04}" in text
    assert r"A: art\_painting" in text
    assert text.count("{") == text.count("}")
    rows = [line for line in text.splitlines() if line.endswith(r"\\")][1:]
    assert len({line.replace(r"\&", "").count("&") for line in rows}) == 1


def test_csv_parses_with_full_precision_and_the_papers_numbers(make_comparison):
    text = render_tables(lay_out("tta", make_comparison()), "csv")

    tent, simatta, _ = csv.DictReader(io.StringIO(text))
    assert tent["method"] == "Tent (steps=1)"
    assert float(simatta["random now 4"]) == 76.5
    assert float(simatta["random now 4 std"]) == pytest.approx(0.5**0.5)
    assert simatta["random now 4 paper"] == "82.22"
    assert tent["random after no label"] == ""
    assert None not in tent  # no row is longer than the head


def test_csv_of_several_sheets_is_one_block(make_suite_run):
    runs = [make_suite_run("EATA"), make_suite_run("mine", data_set="digits", domains=("day",))]

    pacs, digits = csv.DictReader(io.StringIO(render_tables(lay_out("tta", runs), "csv")))

    assert [line["table"] for line in (pacs, digits)] == [
        "TTA comparisons on PACS",
        "Comparison on digits",
    ]
    assert (pacs["domain-wise now A"], pacs["domain-wise now day"]) == ("60.0", "")
    assert (digits["domain-wise now A"], digits["domain-wise now day"]) == ("", "60.0")
    assert digits["domain-wise labels"] == "0.0"


@pytest.mark.parametrize("layout", ["tta", "enhanced", "ada", "corruptions"])
def test_layouts_that_tell_what_a_run_costs_tell_its_memory(make_suite_run, layout):
    runs = [make_suite_run("EATA", peak_memory_mb=1942.8), make_suite_run("CoTTA")]

    (table,) = lay_out(layout, runs)

    part = "" if layout == "ada" else "domain-wise "
    assert cell(table, "EATA", f"{part}MB").figure == MeanStd(1942.8)
    assert "| 1,943 |" in render_tables([table])
    assert "MB: peak memory of the process." in notes(table)
    assert "MB" not in render_tables(lay_out(layout, runs[1:]))


def test_markdown_rows_are_as_long_as_their_head(make_comparison):
    text = render_tables(lay_out("tta", make_comparison()))

    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1
    assert "| *paper* | *67.29* |" in text


def test_a_narrow_terminal_shows_means_and_says_so(make_comparison):
    def printed(width):
        console = Console(file=io.StringIO(), width=width)
        for table in lay_out("tta", make_comparison()):
            print_table(table, console=console)
        return console.file.getvalue()

    assert "73.5 ± 0.7" in printed(200)
    assert "omitted because the terminal is too narrow" not in printed(200)
    assert "±" not in printed(110).partition("Accuracy in percent")[0]
    assert "too narrow" in " ".join(printed(110).split())
    assert "…" not in printed(110)
    assert "…" not in printed(60)
    assert all(len(line.rstrip()) <= 60 for line in printed(60).splitlines())


@pytest.mark.parametrize("form", ["markdown", "csv", "latex", "rich"])
@pytest.mark.parametrize("layout", ["tta", "enhanced", "ada", "corruptions", "complete"])
def test_every_layout_can_be_written_in_every_form(make_comparison, layout, form):
    text = render_tables(lay_out(layout, make_comparison()), form)

    assert "250" in text
    assert text.endswith("\n")


def test_unknown_layouts_forms_and_no_runs_are_refused(make_suite_run):
    with pytest.raises(UnknownName, match="Did you mean 'tta'"):
        lay_out("ttaa", [make_suite_run("EATA")])
    with pytest.raises(SettingError, match="at least one run"):
        lay_out("tta", [])
    with pytest.raises(SettingError, match="form must be one of"):
        render_tables([], "word")  # type: ignore[arg-type]
