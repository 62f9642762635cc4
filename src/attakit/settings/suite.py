"""Suite files: a grid of methods, streams, budgets and seeds that share one experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from attakit.errors import SettingError, unknown_name
from attakit.settings.experiment import Count, OpenTable, Positive, Table
from attakit.settings.load import apply_overrides, parse_experiment, parse_tables, read_tables

Protocol = Literal["fair", "paper"]
BudgetSetting = Count | Literal["unlimited"]
Seed = Annotated[int, Field(strict=True)]
NonEmptyText = Annotated[str, Field(min_length=1)]

PLAIN = "plain"  # the layout of plain tables, one per stream
PAIRED = "paired"  # the layout of tables of differences, paired by stream and source model
LEADERBOARD = "leaderboard"  # the layout of average ranks over all streams


class StreamEntry(OpenTable):
    """[[grid.streams]]: a label and what differs here. Every other key is one of [stream]."""

    label: NonEmptyText | None = None
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] | None = None  # replace all other seeds
    methods: Annotated[tuple[str, ...], Field(min_length=1)] | None = None  # labels; None: all
    changes: dict[str, Any] = Field(default={}, alias="set")  # more settings, by dotted name

    def runs(self, entry: MethodEntry) -> bool:
        """True if a method runs on this stream."""
        return self.methods is None or entry.label in self.methods


class MethodEntry(Table):
    """[[grid.methods]]: a label, the [method] table, and what differs for its cells."""

    label: NonEmptyText  # the name in tables, and part of the folder's name
    method: dict[str, Any] = Field(default={})  # the [method] table; by default that of the base
    batch_size: Positive | None = None  # batch size of the stream, under the protocol "paper" only
    seeds: tuple[Seed, ...] | None = None  # override the seeds of the grid
    budgets: bool | None = None  # True for one cell per budget; None: if it asks for labels
    match: str | None = None  # the method whose number of labels it gets, spread evenly
    changes: dict[str, Any] = Field(default={}, alias="set")  # more settings, by dotted name


class GridTable(Table):
    """[grid]: the values to vary."""

    methods: Annotated[tuple[MethodEntry, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (0,)
    budgets: tuple[BudgetSetting, ...] = ()
    streams: Annotated[tuple[StreamEntry, ...], Field(min_length=1)] = (StreamEntry(),)

    def seeds_of(self, stream: StreamEntry, entry: MethodEntry) -> tuple[int, ...]:
        """The seeds of a method on a stream: the stream's, the method's or the grid's."""
        return stream.seeds or entry.seeds or self.seeds

    def entry(self, label: str) -> MethodEntry:
        """Return the method with this label."""
        return next(entry for entry in self.methods if entry.label == label)


class Suite(Table):
    """Experiments that are compared with each other.

    Examples
    --------
    >>> suite = parse_suite({
    ...     "name": "small",
    ...     "grid": {"seeds": [0, 1], "methods": [{"label": "Tent", "method": {"name": "tent"}}]},
    ... })
    >>> str(suite.results), suite.protocol, suite.grid.seeds
    ('results/small', 'fair', (0, 1))
    """

    name: NonEmptyText
    grid: GridTable
    layout: str = PLAIN
    against: str | None = None  # label of the method that the layout "paired" compares with
    paper: str | None = None
    folder: Path | None = None
    protocol: Protocol = "fair"
    base: dict[str, Any] = Field(default={})

    @property
    def results(self) -> Path:
        """The folder that contains the folders of all cells."""
        return self.folder or Path("results") / self.name

    def under(self, protocol: Protocol | None) -> Suite:
        """Return the same suite under another protocol, in its own folder."""
        if protocol in (None, self.protocol):
            return self
        folder = self.results.with_name(f"{self.results.name}-{protocol}")
        return self.model_copy(update={"protocol": protocol, "folder": folder})


def load_suite(path: Path, overrides: Sequence[str] = ()) -> Suite:
    """Read a suite file and apply `a.b=c` overrides, such as `base.stream.share=0.1`."""
    return parse_suite(apply_overrides(read_tables(path, "a suite"), overrides), where=str(path))


def parse_suite(tables: Mapping[str, Any], where: str = "suite") -> Suite:
    """Check plain tables and turn them into a `Suite`."""
    if "grid" not in tables:
        raise SettingError(
            f"{where}: the [grid] table is missing, so this is not a suite. Run a single "
            "experiment with `attakit run`."
        )
    suite = parse_tables(Suite, tables, where)
    parse_experiment(suite.base, where=f"{where}: base")
    _check_labels(suite.grid, where)
    _check_against(suite, where)
    for stream in suite.grid.streams:
        _check_methods(stream, suite.grid, where)
    for entry in suite.grid.methods:
        _check_match(entry, suite.grid, where)
    return suite


def _check_labels(grid: GridTable, where: str) -> None:
    labels = [entry.label for entry in grid.methods]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise SettingError(
            f"{where}: grid.methods: labels must differ, but {', '.join(twice)} occurs twice."
        )


def _check_against(suite: Suite, where: str) -> None:
    """Raise `SettingError` unless `against` is given for "paired" tables, and only for them."""
    if (suite.layout == PAIRED) != (suite.against is not None):
        raise SettingError(
            f'{where}: against is the label of the method that layout = "{PAIRED}" compares with: '
            f"give both or neither, got layout = {suite.layout!r} and against = {suite.against!r}."
        )
    labels = [entry.label for entry in suite.grid.methods]
    if suite.against is not None and suite.against not in labels:
        raise SettingError(
            f"{where}: {unknown_name('method to compare with', suite.against, labels)}"
        )


def _check_methods(stream: StreamEntry, grid: GridTable, where: str) -> None:
    """Raise `SettingError` unless the methods of a stream exist, and those they match too."""
    who = f"{where}: grid.streams: {stream.label!r}"
    labels = [entry.label for entry in grid.methods]
    for label in stream.methods or ():
        if label not in labels:
            raise SettingError(f"{who}: {unknown_name('method', label, labels)}")
        partner = grid.entry(label).match
        if partner is not None and partner not in (stream.methods or ()):
            raise SettingError(
                f"{who}: {label!r} is matched to {partner!r}, which is not among the stream's "
                f"methods. Add it to methods, or leave {label!r} out."
            )


def _check_match(entry: MethodEntry, grid: GridTable, where: str) -> None:
    """Raise `SettingError` unless a run exists that the entry can be matched to."""
    if entry.match is None:
        return
    who = f"{where}: grid.methods: {entry.label!r}"
    others = [other.label for other in grid.methods if other is not entry and not other.match]
    if entry.match not in others:
        raise SettingError(f"{who}: {unknown_name('method to match', entry.match, others)}")
    partner = grid.entry(entry.match)
    lacking = sorted({*(entry.seeds or grid.seeds)} - {*(partner.seeds or grid.seeds)})
    if lacking:
        raise SettingError(
            f"{who} is matched to {entry.match!r}, which has no seed "
            f"{', '.join(map(str, lacking))}. Use the same seeds as that method, or some of them."
        )
