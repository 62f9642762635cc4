"""The numbers printed in the paper, for comparison.

They are in `paper.toml`, under the names of their tables.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from attakit.errors import unknown_name
from attakit.report.tables import PaperNumber

_FILE = "paper.toml"
_WITHOUT_NUMBERS = ("figure-13",)  # the ablation, which a suite may still reproduce


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's tables.

    Examples
    --------
    >>> table = paper_tables()["table-2-pacs"]
    >>> table.row_name("simatta", 300), table.letter("art_painting")
    ('SimATTA (B ≤ 300)', 'A')
    >>> table.number("EATA", "random/after/S")
    PaperNumber(value=54.26, deviation=None)
    """

    name: str  # in the file, such as `table-2-pacs`
    title: str
    layout: str  # the layout that shows the same
    data_set: str
    columns: tuple[str, ...]
    rows: Mapping[str, Sequence[Any]]  # numbers in the order of the columns
    source: str | None = None  # letter of the source domain
    domains: Mapping[str, str] = field(default_factory=dict)  # by their letters
    labels: Mapping[str, Sequence[int]] = field(default_factory=dict)  # domain-wise and random
    method: str | None = None  # for complete results: the method of the whole table

    def number(self, row: str, column: str) -> PaperNumber | None:
        """Return a number of the table; None if it has none."""
        if row not in self.rows or column not in self.columns:
            return None
        printed = self.rows[row][self.columns.index(column)]
        if isinstance(printed, str):  # "N/A"
            return None
        return PaperNumber(*printed) if isinstance(printed, list) else PaperNumber(printed)

    def row_name(self, label: str, budget: object = None) -> str | None:
        """Return the row of a method, whose budget may be part of the paper's name for it."""
        names = {spelling_key(name): name for name in self.rows}
        for wanted in (label, f"{label} (B ≤ {budget})", f"{label} (B = {budget})"):
            if spelling_key(wanted) in names:
                return names[spelling_key(wanted)]
        return None

    def letter(self, domain: str) -> str | None:
        """Return the paper's letter for a domain."""
        letters = {spelling_key(name): letter for letter, name in self.domains.items()}
        return letters.get(spelling_key(domain))


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """Return all of the paper's tables, by name."""
    text = files("attakit.paper.tables").joinpath(_FILE).read_text(encoding="utf-8")
    return {
        name: PaperTable(name=name, **{**table, "columns": tuple(table["columns"])})
        for name, table in tomllib.loads(text).items()
    }


def paper_names() -> list[str]:
    """Return what a suite may reproduce: a table, that table on one data set, or the ablation.

    >>> "table-2" in paper_names(), "table-2-pacs" in paper_names(), "table-99" in paper_names()
    (True, True, False)
    """
    whole = ("-".join(name.split("-")[:2]) for name in paper_tables())
    return list(dict.fromkeys([*whole, *paper_tables(), *_WITHOUT_NUMBERS]))


def paper_number(table: str, method: str, column: str) -> PaperNumber | None:
    """Return a number in the paper; None if the table has none.

    >>> paper_number("table-2-pacs", "Tent (steps=1)", "domain-wise/A")
    PaperNumber(value=67.29, deviation=None)
    >>> paper_number("table-4-pacs", "CLUE (B = 300)", "S")
    PaperNumber(value=86.91, deviation=0.26)
    """
    if table not in paper_tables():
        raise unknown_name("table", table, paper_tables())
    found = paper_tables()[table]
    row = found.row_name(method)
    return None if row is None else found.number(row, column)


def find_table(layout: str, data_set: str, method: str | None = None) -> PaperTable | None:
    """Return the table that matches a layout and a data set; None if the paper has none.

    >>> find_table("tta", "office_home").name
    'table-6'
    """
    wanted = (layout, spelling_key(data_set), None if method is None else spelling_key(method))
    for table in paper_tables().values():
        about = None if table.method is None else spelling_key(table.method)
        if (table.layout, spelling_key(table.data_set), about) == wanted:
            return table
    return None


def spelling_key(name: str) -> str:
    """Normalise the spelling of a name.

    >>> spelling_key("SAR (step=10)") == spelling_key("sar (steps=10)")
    True
    >>> spelling_key("K-means (B <= 300)")
    'kmeansb≤300'
    """
    spelled = name.casefold().replace("<=", "≤").replace("steps=", "step=")
    return re.sub(r"[^\w≤=]|_", "", spelled)
