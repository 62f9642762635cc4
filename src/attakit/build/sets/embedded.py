"""Data sets in pip packages: one of rows and one of texts."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from attakit.build.sets.rows import table_task, text_task
from attakit.build.task import ProgressCallback, Task, refuse_settings
from attakit.errors import needs_extra
from attakit.settings.experiment import StreamTable, TabularTable, TextTable
from attakit.stream.row_files import RowFile

EXTRA = "embedded"

_FOREIGN = ("root", "size", "skip_corrupt", "severity", "table", "text")

# The number of rings is about the age in years; each class has about a third of the animals.
_AGES = {"young": range(9), "middle": range(9, 11), "old": range(11, 100)}
_SEXES = {"F": "female", "M": "male", "I": "infant"}

_LANGUAGES = {"en": "English", "nl": "Dutch", "de": "German", "fr": "French", "es": "Spanish"}
_NAMES = {
    "country": "territories",
    "language": "languages",
    "currency": "currencies",
    "script": "scripts",
}


def abalone(table: StreamTable, _checking: ProgressCallback) -> Task:
    """Abalone: age class of a shellfish from 7 measurements, female → male → infant."""
    refuse_settings(table, *_FOREIGN)
    with needs_extra("The data set 'abalone'", EXTRA):
        data = importlib.import_module("sklego.datasets").load_abalone(as_frame=True)
    columns = {name: data[name].tolist() for name in data.columns}
    columns["sex"] = [_SEXES[sex] for sex in columns["sex"]]
    columns["age"] = [_age(rings) for rings in columns.pop("rings")]
    own = TabularTable(file=Path("abalone"), label="age", domain="sex")
    return table_task(RowFile(own.file, columns), _with_source(table, "female"), own)


def _age(rings: int) -> str:
    return next(name for name, years in _AGES.items() if rings in years)


def names(table: StreamTable, _checking: ProgressCallback) -> Task:
    """Names: country, language, currency or script? English → Dutch, German, French, Spanish."""
    refuse_settings(table, *_FOREIGN)
    with needs_extra("The data set 'names'", EXTRA):
        locale = importlib.import_module("babel").Locale
    rows = [row for code in _LANGUAGES for row in _rows_of(locale(code), _LANGUAGES[code])]
    columns = {
        name: [row[place] for row in rows]
        for place, name in enumerate(("language", "kind", "name"))
    }
    own = TextTable(
        file=Path("names"), label="kind", domain="language", text="name", tokenizer="ngrams"
    )
    return text_task(RowFile(own.file, columns), _with_source(table, "English"), own)


def _rows_of(locale: Any, language: str) -> list[tuple[str, str, str]]:
    """Return the names of one language, each text once and in a fixed order."""
    found = {
        (kind, str(name))
        for kind, member in _NAMES.items()
        for name in getattr(locale, member).values()
    }
    texts = [text for _, text in found]
    # A text with two meanings, such as a language and its script, has no right answer.
    return [(language, kind, text) for kind, text in sorted(found) if texts.count(text) == 1]


def _with_source(table: StreamTable, source: str) -> StreamTable:
    """Return the table with the usual source, unless it names another."""
    return table if table.source else table.model_copy(update={"source": source})
