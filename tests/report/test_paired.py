import io
import random

import pytest
from rich.console import Console
from scipy.stats import t

from attakit.errors import UnknownName
from attakit.report import RunRecord
from attakit.report.contests import confidence_interval
from attakit.report.paired import paired_tables
from attakit.report.terminal_tables import terminal_table

DOMAINS = ["art", "cartoon", "sketch"]


def run(label, accuracy, order="1", *, end=True, weights="m", seed=0, **settings):
    """A run whose stream has one of several orders: its domains rotate."""
    place = int(order) % 3
    experiment = {
        "label": label,
        "seed": seed,
        "stream": {"name": "pacs", "targets": DOMAINS[place:] + DOMAINS[:place]},
        "model": {"name": "resnet18"},
        "method": {"name": settings.pop("method", label)},
        **settings,
    }
    figures = {
        "stream_accuracy": accuracy,
        "labels": 0 if label == "plain" else 92,
        "seconds": 2.0 if label == "plain" else 3.0,
        "source_accuracy": 90.0,
    }
    found = {"stream": f"order {order}", "model": weights}
    return RunRecord(experiment, found, [], [], [], figures if end else None)


def column(table, title):
    place = [each.title for each in table.columns].index(title)
    return {row.label: table.write(row.cells[place]) for row in table.rows}


@pytest.mark.parametrize("count", [2, 5, 12, 31, 32, 60, 400])
def test_the_interval_is_that_of_students_t(count):
    draw = random.Random(count)
    differences = [draw.gauss(1.0, 2.0) for _ in range(count)]
    mean = sum(differences) / count
    spread = (sum((each - mean) ** 2 for each in differences) / (count - 1) / count) ** 0.5
    found = confidence_interval(differences)
    assert found.mean == pytest.approx(mean)
    assert found.deviation == pytest.approx(t.ppf(0.975, count - 1) * spread, rel=2e-3)


def test_a_single_difference_has_no_interval_and_none_has_no_mean():
    assert confidence_interval([3.0]).deviation is None
    assert confidence_interval([]) is None


def test_orders_of_one_stream_are_one_table_and_are_compared_in_pairs():
    """Both methods find the second order hard: the difference is the same, without any spread."""
    runs = [run("simatta", base, order) for order, base in (("1", 60.0), ("2", 40.0))]
    runs += [run("head", base + 5, order) for order, base in (("1", 60.0), ("2", 40.0))]
    table, overview = paired_tables(runs, "simatta")
    assert table.title == "pacs, resnet18, domain-wise stream"
    assert column(table, "to simatta") == {"simatta": "–", "head": "+5.0 ± 0.0"}
    assert column(table, "stream")["head"] == "55.0 ± 14.1"
    assert [row.runs for row in table.rows] == [2, 2]
    assert column(overview, "head") == {table.title: "+5.0 ± 0.0"}


def test_only_runs_of_the_same_order_model_and_seed_are_pairs():
    runs = [
        run("simatta", 60.0, "1"),
        run("head", 64.0, "1"),
        run("head", 99.0, "2"),
        run("head", 99.0, "1", weights="another"),
        run("head", 99.0, "1", seed=1),
    ]
    table, _ = paired_tables(runs, "simatta")
    assert column(table, "to simatta")["head"] == "+4.0"


def test_a_loss_has_its_sign_too():
    table, _ = paired_tables([run("simatta", 60.0), run("head", 58.5)], "simatta")
    assert column(table, "to simatta")["head"] == "-1.5"


def test_time_is_told_as_a_multiple_of_the_same_stream_without_adaptation():
    runs = [run("plain", 40.0, method="source_only"), run("simatta", 60.0), run("head", 65.0)]
    table, _ = paired_tables(runs, "simatta")
    assert column(table, "× source only") == {"plain": "1.0", "simatta": "1.5", "head": "1.5"}


def test_models_data_sets_and_kinds_of_order_have_tables_of_their_own():
    others = [
        {"model": {"name": "lite0"}},
        {"stream": {"name": "pacs", "targets": DOMAINS, "order": "random"}},
        {"stream": {"name": "digits"}},
        {"stream": {"name": "pacs", "targets": DOMAINS, "share": 0.3, "rest": True}},
    ]
    runs = [run(label, 60.0, **given) for given in ({}, *others) for label in ("simatta", "head")]
    *tables, overview = paired_tables(runs, "simatta")
    assert [table.title for table in tables] == [
        "pacs, resnet18, domain-wise stream, rest not set, share not set",
        "pacs, resnet18, random stream, rest not set, share not set",
        "pacs, resnet18, domain-wise stream, rest = True, share = 0.3",
        "pacs, lite0, domain-wise stream",
        "digits, resnet18, domain-wise stream",
    ]
    assert [row.label for row in overview.rows] == [table.title for table in tables]


def test_domain_wise_streams_come_first_and_the_overview_has_only_what_can_be_compared():
    mixed = {"stream": {"name": "pacs", "targets": DOMAINS, "order": "random"}}
    runs = [run("head", 70.0, **mixed), run("head", 65.0), run("simatta", 60.0)]
    *tables, overview = paired_tables(runs, "simatta")
    assert [table.title.split(", ")[2] for table in tables] == [
        "domain-wise stream",
        "random stream",
    ]
    assert column(overview, "head") == {tables[0].title: "+5.0"}


def test_unfinished_runs_are_left_out_and_counted():
    runs = [run("simatta", 60.0), run("head", 65.0), run("head", 0.0, "2", end=False)]
    table, _ = paired_tables(runs, "simatta")
    assert column(table, "stream")["head"] == "65.0"
    assert "Left out: 1 not finished." in table.notes


def test_the_note_says_the_gain_of_the_labels_over_all_orders():
    runs = [run("plain", 40.0, order, method="source_only") for order in "12"]
    runs += [run("simatta", 60.0, order) for order in "12"]
    table, _ = paired_tables(runs, "simatta")
    assert "With 92 labels simatta is at 60.0 %" in " ".join(table.notes)


def test_a_method_to_compare_with_that_was_not_run_is_named():
    with pytest.raises(UnknownName, match=r"method to compare with 'simata'. Did you mean 'simat"):
        paired_tables([run("simatta", 60.0)], "simata")


@pytest.mark.parametrize("width", [80, 200])
def test_intervals_are_shown_however_narrow_the_terminal_is(width):
    runs = [run(f"method {n}", 60.0 + n, order) for n in range(6) for order in "12"]
    console = Console(width=width, file=io.StringIO())
    for table in paired_tables(runs, "method 0"):
        console.print(terminal_table(table, width))
    assert console.file.getvalue().count("+5.0 ± 0.0") == 2
