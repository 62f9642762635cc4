"""Your own rows: a table with a domain or a time column, or texts with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from attakit.build.sets.places import missing_setting
from attakit.build.sets.tokenizers import read_tokens
from attakit.build.task import Content, ProgressCallback, Task, refuse_settings
from attakit.errors import SettingError, StreamError, unknown_name
from attakit.queries import SampleId
from attakit.settings.experiment import RowsTable, StreamTable, TabularTable, TextTable
from attakit.stream.row_domains import Positions, rows_by_period, rows_by_value
from attakit.stream.row_files import RowFile, as_text, is_missing, read_row_file
from attakit.stream.samples import ArraySamples, Domains, Samples, Subset
from attakit.stream.tabular import check_complete, fit_encoder
from attakit.train.source_samples import split_positions

Encode = Callable[[Sequence[int]], NDArray[np.float32] | NDArray[np.int64]]


def own_table(table: StreamTable, _checking: ProgressCallback) -> Task:
    """Your own table: CSV, JSON lines or Parquet with a domain or a time column."""
    refuse_settings(table, "root", "size", "skip_corrupt", "severity", "text")
    if table.table is None:
        raise missing_setting(table, "table", "the table with file, label and domain or time")
    return table_task(read_row_file(table.table.file), table, table.table)


def own_texts(table: StreamTable, _checking: ProgressCallback) -> Task:
    """Your own texts: CSV, JSON lines or Parquet with texts or token ids in a column."""
    refuse_settings(table, "root", "size", "skip_corrupt", "severity", "table")
    if table.text is None:
        raise missing_setting(table, "text", "the table with file, label and domain or time")
    return text_task(read_row_file(table.text.file), table, table.text)


def table_task(rows: RowFile, table: StreamTable, own: TabularTable) -> Task:
    """Build a task of standardised rows, with means, deviations and categories of the source."""
    split = _Split(rows, table, own)
    reserved = {own.label, own.domain, own.time}
    columns = own.features or tuple(name for name in rows.columns if name not in reserved)
    for name in columns:
        if name in (own.label, own.domain):
            raise SettingError(
                f"stream.table.features: {name!r} is the label or the domain. Leave it out of "
                "features."
            )
        rows.column(name)
    check_complete(rows, columns, split.used, own.missing)
    encoder = fit_encoder(rows, columns, split.trained)

    def content(position: int) -> Content:
        return {name: as_text(rows.column(name)[position]) for name in columns}

    return split.task(lambda positions: encoder.encode(rows, positions), content)


def text_task(rows: RowFile, table: StreamTable, own: TextTable) -> Task:
    """Build a task of token ids. A vocabulary of words is the source's."""
    split = _Split(rows, table, own)
    encode = read_tokens(rows, own, split.trained)
    shown = rows.column(own.text if own.text in rows.columns else own.tokens or own.text)
    return split.task(encode, lambda position: as_text(shown[position]), own.vocabulary)


class _Split:
    """The rows of the source, for training or held out, and of each target."""

    def __init__(self, rows: RowFile, table: StreamTable, own: RowsTable) -> None:
        self.rows = rows
        domains = _domains(rows, own)
        self.source, self.targets = _choose(table, own, domains)
        self.domains = {name: domains[name] for name in (self.source, *self.targets)}
        self.used = sorted(position for part in self.domains.values() for position in part)
        self.classes, self.labels = _labels(rows, own.label, self.used)
        source = self.domains[self.source]
        taken, held_out = split_positions(len(source), table.held_out, seed=0)
        self.taken, self.held_out = taken, held_out
        self.trained = [source[place] for place in taken]

    def task(
        self, encode: Encode, content: Callable[[int], Content], vocabulary: int | None = None
    ) -> Task:
        parts = {name: self._samples(name, encode) for name in self.domains}
        source = parts.pop(self.source)
        positions = {
            SampleId(f"{name}/{position + 1}"): position
            for name, part in self.domains.items()
            for position in part
        }
        return Task(
            self.classes,
            Domains(self.classes, parts),
            Subset(source, self.taken),
            Subset(source, self.held_out) if self.held_out else None,
            content=lambda sample: content(positions[sample]),
            vocabulary=vocabulary,
        )

    def _samples(self, domain: str, encode: Encode) -> Samples:
        positions = self.domains[domain]
        names = [f"{domain}/{position + 1}" for position in positions]
        labels = [self.labels[position] for position in positions]
        return ArraySamples(encode(positions), labels, names=names)


def _domains(rows: RowFile, own: RowsTable) -> Positions:
    if (own.domain is None) == (own.time is None):
        raise SettingError(
            f"{rows.path}: set either domain (the column with the domain) or time (the column to "
            "cut into periods)."
        )
    if own.label in (own.domain, own.time):
        raise SettingError(
            f"{rows.path}: {own.label!r} cannot be both label and domain. Name two different "
            "columns."
        )
    if own.domain is not None:
        return rows_by_value(rows, own.domain)
    return rows_by_period(rows, own.time or "", own.periods)


def _choose(table: StreamTable, own: RowsTable, domains: Positions) -> tuple[str, tuple[str, ...]]:
    source = table.source or (next(iter(domains)) if own.time is not None else None)
    if source is None:
        raise missing_setting(table, "source", "the domain that the model was trained on")
    for name in (source, *table.targets):
        if name not in domains:
            raise unknown_name("domain", name, domains)
    if source in table.targets:
        raise SettingError(f"stream.targets: {source!r} is the source, so it cannot be a target.")
    targets = table.targets or tuple(name for name in domains if name != source)
    if not targets:
        raise SettingError(
            f"There is no domain except the source {source!r}. Add rows of another one."
        )
    return source, targets


def _labels(
    rows: RowFile, column: str, used: Sequence[int]
) -> tuple[tuple[str, ...], dict[int, int]]:
    """Return sorted classes, numbers by value, and the class of each row."""
    cells = rows.column(column)
    for position in used:
        if is_missing(cells[position]):
            raise StreamError(
                f"{rows.where(position)} has no label: {column} is empty. Fill it in, or remove "
                "the row."
            )
    found = {position: as_text(cells[position]) for position in used}
    classes = sorted(set(found.values()), key=_as_ordered)
    if len(classes) < 2:
        raise StreamError(
            f"{rows.path}: the label {column} must have at least two classes, got only "
            f"{classes[0]!r}."
        )
    numbers = {name: number for number, name in enumerate(classes)}
    return tuple(classes), {position: numbers[name] for position, name in found.items()}


def _as_ordered(name: str) -> tuple[bool, float, str]:
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name
