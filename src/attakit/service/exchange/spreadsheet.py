"""CSV that is safe to open in a spreadsheet, and CSV written by spreadsheets."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from attakit.errors import LabelError
from attakit.service.exchange.lines import ExportedQuestion, Line, LineProblem, shortened

if TYPE_CHECKING:
    from _csv import Reader

COLUMNS = (
    "question",
    "sample",
    "asked_at",
    "version",
    "entropy",
    "guess",
    "probability",
    "state",
    "proposed",
    "id",
    "text",
    "notes",
    "array",
    "annotator",
    "kind",
    "answer",
    "comment",
    "flagged",
)
_NEEDED = ("question", "answer")
_DELIMITERS = ",;\t"
# Characters that start a formula in a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_QUOTE = "'"


def table_of(asked: Iterable[ExportedQuestion], classes: Sequence[str]) -> Iterator[str]:
    """Yield the text of a table with one row per question, or per answer, in pieces."""
    writer = csv.writer(_HandingBack())
    yield writer.writerow(COLUMNS)
    for one in asked:
        for row in _rows(one, classes):
            yield writer.writerow(row)


def read_table(stream: Iterable[str]) -> Iterator[Line | LineProblem]:
    """Read rows with named columns; only `question` and `answer` are required."""
    reader = _open(stream)
    header = _read_header(reader)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield LineProblem(reader.line_num, f"it is not a line of CSV ({error})")
            continue
        if any(cell.strip() for cell in row):
            yield _to_line(reader.line_num, header, row)


def escape_cell(text: str) -> str:
    """Make a text safe for a spreadsheet: put a quote before anything like a formula.

    >>> escape_cell("=HYPERLINK(1)"), escape_cell("cat")
    ("'=HYPERLINK(1)", 'cat')
    """
    return _QUOTE + text if _looks_dangerous(text) or text.startswith(_QUOTE) else text


def unescape_cell(cell: str) -> str:
    """Undo `escape_cell`.

    >>> unescape_cell("'-5"), unescape_cell("'tis")
    ('-5', "'tis")
    """
    rest = cell[1:]
    escaped = cell.startswith(_QUOTE) and (_looks_dangerous(rest) or rest.startswith(_QUOTE))
    return rest if escaped else cell


def _looks_dangerous(text: str) -> bool:
    return text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)


def _rows(asked: ExportedQuestion, classes: Sequence[str]) -> Iterator[list[object]]:
    question = asked.question
    guess, probability = question.guesses[0] if question.guesses else (None, "")
    start = [
        question.question,
        escape_cell(question.sample),
        datetime.fromtimestamp(question.at, UTC).isoformat(timespec="seconds"),
        question.version,
        question.score,
        "" if guess is None else escape_cell(classes[guess]),
        probability,
        question.state,
        "" if question.proposed is None else escape_cell(classes[question.proposed]),
        escape_cell(asked.caller_id),
        escape_cell(asked.text),
        json.dumps(dict(asked.notes), ensure_ascii=False) if asked.notes else "",
        asked.numbers,
    ]
    if not asked.answers:
        yield [*start, "", "", "", "", ""]
    for given in asked.answers:
        said = "" if given.label is None else escape_cell(classes[given.label])
        remarks = [escape_cell(given.comment or ""), "yes" if given.flagged else ""]
        yield [*start, escape_cell(given.annotator), given.kind, said, *remarks]


class _HandingBack:
    """A file for the CSV writer that passes on what its file returns."""

    def write(self, text: str) -> str:
        return text


def _open(stream: Iterable[str]) -> Reader:
    """Read with the delimiter of the first line, which depends on the spreadsheet's locale."""
    lines = iter(stream)
    first = next(lines, "").removeprefix("\ufeff")
    delimiter = max(_DELIMITERS, key=first.count)
    return csv.reader(chain([first], lines), delimiter=delimiter)


def _read_header(reader: Reader) -> list[str]:
    try:
        header = [name.strip().lower() for name in next(reader)]
    except (StopIteration, csv.Error):
        header = []
    missing = [name for name in _NEEDED if name not in header]
    if header and missing:
        raise LabelError(
            "Import: the first line must name the columns question and answer, but lacks "
            f"{' and '.join(missing)}, got {shortened(','.join(header))}. Fill in a file that "
            "`attakit questions export` wrote."
        )
    return header


def _to_line(number: int, header: Sequence[str], row: Sequence[str]) -> Line | LineProblem:
    if len(row) > len(header) and any(row[len(header) :]):
        return LineProblem(number, f"it has {len(row)} fields, and the first line {len(header)}")
    cells = {
        name: unescape_cell(cell.strip()) for name, cell in zip(header, row, strict=False) if cell
    }
    found = {name: cells.get(name) or None for name in (*_NEEDED, "kind", "annotator")}
    return Line(number, **found)
