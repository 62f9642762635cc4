"""The paper's table layouts, filled with our runs. `LAYOUTS` lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from attakit.errors import SettingError, unknown_name
from attakit.paper.tables.complete_layout import complete
from attakit.paper.tables.measures import (
    Measure,
    cost_measures,
    in_paper_order,
    letter_of,
    mean_of,
    memory_measures,
    new_measure,
    printed_at,
    printed_labels,
    row_title,
    segments_of,
    source_measures,
    target_measures,
)
from attakit.paper.tables.notes import (
    READ_COMPARISON,
    READ_CORRUPTIONS,
    READ_MEMORY,
    READ_POOL,
    legend,
    paper_note,
)
from attakit.paper.tables.numbers import PaperTable, find_table, paper_names
from attakit.report.curves import step_segments
from attakit.report.fairness import fairness_notes
from attakit.report.label_gain import label_gain
from attakit.report.lineup import (
    Entrant,
    final,
    line_up,
    orders_of,
    several_budgets,
    with_remark,
)
from attakit.report.runs import RunRecord, inapplicable_note
from attakit.report.streams import by_conditions, is_pool, order_of, stream_name
from attakit.report.tables import MEMORY_TITLE, ResultTable, TableRow
from attakit.settings.suite import LEADERBOARD, PAIRED, PLAIN, Suite

Layout = Callable[[str, Sequence[Entrant]], list[ResultTable]]

_OF_POOLS = "ada"
_IMAGES = 10_000
_TIMED = ("noise", "blur")  # the paper times these corruptions only


def lay_out(name: str, runs: Sequence[RunRecord]) -> list[ResultTable]:
    """Fill one of the paper's layouts with runs: a table per data set and kind of stream.

    The stream orders are next to each other. Layouts of streams exclude pool runs.

    >>> end = {"stream_accuracy": 80.0, "segments": {"sketch": 80.0}, "labels": 0}
    >>> experiment = {"label": "EATA", "stream": {"name": "pacs"}}
    >>> (table,) = lay_out("tta", [RunRecord(experiment, {}, ["sketch"], [], [], end)])
    >>> table.rows[0].cells[0]
    TableCell(figure=MeanStd(mean=80.0, deviation=None),
              paper=PaperNumber(value=50.27, deviation=None), decimals=1, signed=False)
    """
    if name not in LAYOUTS:
        raise unknown_name("layout", name, LAYOUTS)
    if not runs:
        raise SettingError(f"The layout {name!r} needs at least one run, got none.")
    on_streams, notes = _without_pools(name, runs)
    tables: list[ResultTable] = []
    for own in by_conditions(on_streams):
        applicable = [run for run in own.runs if not run.inapplicable]
        empty = [run for run in own.runs if run.inapplicable]
        below = (*_gains(applicable), *notes, *filter(None, [inapplicable_note(empty)]))
        for table in LAYOUTS[name](own.data_set, line_up(applicable)):
            title = with_remark(str(table.title), own.description)
            filled = table.with_inapplicable(run.label for run in empty if table.corner)
            tables.append(replace(filled, title=title, notes=(*table.notes, *below)))
    return tables


def _gains(runs: Sequence[RunRecord]) -> Iterator[str]:
    """Describe the gain of the labels, for each order of the stream."""
    orders = list(dict.fromkeys(order_of(run) for run in runs))
    for order in orders:
        sentence = label_gain([run for run in runs if order_of(run) == order])
        if sentence:
            yield f"{stream_name(order).capitalize()} stream: {sentence}"


def _without_pools(
    layout: str, runs: Sequence[RunRecord]
) -> tuple[Sequence[RunRecord], tuple[str, ...]]:
    """Return the runs that a layout shows, and a note about the others."""
    pools = [run for run in runs if is_pool(run)]
    if layout == _OF_POOLS or not pools:
        return runs, ()
    if len(pools) == len(runs):
        raise SettingError(
            f"The layout {layout!r} shows streams, but all {len(runs)} runs are over a pool. Use "
            f"the layout {_OF_POOLS!r}."
        )
    noun = "run" if len(pools) == 1 else "runs"
    note = f"Left out: {len(pools)} {noun} over a pool; the layout {_OF_POOLS} shows them."
    return [run for run in runs if not is_pool(run)], (note,)


def _comparison(layout: str, data_set: str, entrants: Sequence[Entrant]) -> list[ResultTable]:
    """TTA methods: accuracy along the stream and after it, domain-wise and random."""
    table = find_table(layout, data_set)
    columns: list[Measure] = []
    for order in orders_of(entrants):
        columns += _now_measures(entrants, table, order)
        columns += source_measures(entrants, table, order)
        columns += target_measures(entrants, table, order)
        columns += cost_measures(entrants, order, printed_labels(order))
    title = table.title if table is not None else f"Comparison on {data_set}"
    return [_result_table(title, columns, entrants, table, READ_COMPARISON)]


def _now_measures(
    entrants: Sequence[Entrant], table: PaperTable | None, order: str
) -> list[Measure]:
    """Accuracy along the stream, per segment, and the plain mean of the segments."""
    names = segments_of(entrants, order)
    letters = [letter_of(table, name) for name in names]
    paths = [f"{stream_name(order)}/{letter}" for letter in letters]
    columns = [
        new_measure(order, "now", letter, final("segments", name), printed_at(path))
        for name, letter, path in zip(names, letters, paths, strict=True)
    ]
    if len(names) < 2:
        return columns
    mean = mean_of("segments", names)
    return [*columns, new_measure(order, "now", "mean", mean, printed_at(*paths))]


def ada(data_set: str, entrants: Sequence[Entrant]) -> list[ResultTable]:
    """Active domain adaptation: mean (deviation) on whole domains after adaptation."""
    table = find_table("ada", data_set)
    columns = [
        *source_measures(entrants, table, None),
        *target_measures(entrants, table, None),
        *cost_measures(entrants, None),
    ]
    title = table.title if table is not None else f"Active domain adaptation on {data_set}"
    return [_result_table(title, columns, entrants, table, READ_POOL, pooled=True)]


def corruptions(data_set: str, entrants: Sequence[Entrant]) -> list[ResultTable]:
    """Corruptions: seconds per 10,000 images and accuracy under each corruption."""
    table = find_table("corruptions", data_set)
    columns: list[Measure] = []
    for order in orders_of(entrants):
        names = segments_of(entrants, order)
        # The paper streams brightness, its source, but not in its table and average.
        counted = [name for name in names if table is None or table.letter(name)] or names
        seconds, mean = printed_at("seconds"), mean_of("segments", counted)
        columns.append(new_measure(order, "", "s/10,000", seconds_per_images, seconds))
        for name in names:
            letter, read = letter_of(table, name), final("segments", name)
            columns.append(new_measure(order, "now", letter, read, printed_at(letter)))
        columns.append(new_measure(order, "now", "mean", mean, printed_at("average")))
        columns.append(new_measure(order, "", "labels", final("labels"), printed_labels(order), 0))
        columns += memory_measures(entrants, order)
    title = table.title if table is not None else f"Corruptions of {data_set}"
    return [_result_table(title, columns, entrants, table, READ_CORRUPTIONS)]


def seconds_per_images(run: RunRecord) -> float | None:
    """Seconds per 10,000 images, on noise and blur where the stream has them, as in the paper."""
    names = step_segments(run)
    timed = [
        step
        for step, name in zip(run.steps, names, strict=True)
        if name is not None and name.endswith(_TIMED)
    ]
    steps = timed or run.steps
    images = sum(int(step.get("size") or 0) for step in steps)
    return _IMAGES * sum(step.get("seconds") or 0.0 for step in steps) / images if images else None


def _result_table(
    title: str,
    measures: Sequence[Measure],
    entrants: Sequence[Entrant],
    table: PaperTable | None,
    reading: str,
    *,
    pooled: bool = False,
) -> ResultTable:
    rows = []
    for entrant in in_paper_order(entrants, table):
        with_budget = several_budgets(entrants, entrant.label)
        cells = tuple(measure.cell(entrant, table) for measure in measures)
        rows.append(TableRow(row_title(entrant, table, with_budget=with_budget), cells))
    columns = tuple(measure.column for measure in measures)
    has_paper = any(row.has_paper for row in rows)
    memory = [READ_MEMORY] if any(column.title == MEMORY_TITLE for column in columns) else []
    notes = [reading, *memory, *legend(table), *paper_note(table if has_paper else None)]
    return ResultTable(
        title,
        columns,
        tuple(rows),
        (*notes, *fairness_notes(entrants, pooled=pooled)),
        deviation="()" if pooled else "±",
    )


LAYOUTS: dict[str, Layout] = {
    "tta": partial(_comparison, "tta"),
    "enhanced": partial(_comparison, "enhanced"),  # by randomly chosen labels
    "corruptions": corruptions,
    "ada": ada,
    "complete": complete,
}


def check_layout(name: str) -> None:
    """Raise `SettingError` unless the layout exists: one of ours or one of the paper's."""
    known = (PLAIN, PAIRED, LEADERBOARD, *LAYOUTS)
    if name not in known:
        raise unknown_name("layout", name, known)


def check_suite(suite: Suite, where: str = "suite") -> None:
    """Raise `SettingError` unless the suite's layout and the paper's table exist."""
    try:
        check_layout(suite.layout)
        if suite.paper is not None and suite.paper not in paper_names():
            raise unknown_name("paper", suite.paper, paper_names())
    except SettingError as error:
        raise SettingError(f"{where}: {error}") from error
