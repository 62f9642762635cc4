"""Import answers. Each line is taken completely or not at all."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from attakit.class_names import plain_name
from attakit.errors import LabelError, UnknownQuestion, check_choice
from attakit.queries import AnswerKind
from attakit.service.exchange.json_lines import read_lines
from attakit.service.exchange.label_studio import read_annotations
from attakit.service.exchange.lines import (
    FILE_FORMATS,
    WORDS,
    FileFormat,
    ImportReport,
    Line,
    LineProblem,
    shortened,
)
from attakit.service.exchange.spreadsheet import read_table
from attakit.service.storage import Storage

_READERS: dict[str, Callable[[TextIO], Iterator[Line | LineProblem]]] = {
    "csv": read_table,
    "jsonl": read_lines,
    "label-studio": read_annotations,
}
_COUNTED = {"accepted": "taken", "conflict": "conflicting"}  # others keep their name
_LARGEST_NUMBER = 2**63 - 1  # limit of the databases
_LONGEST_NAME = 200
_SHOWN_CLASSES = 10

ReadAnswer = tuple[int, str, AnswerKind, int | None]


def read_answers(
    storage: Storage,
    stream: TextIO,
    form: FileFormat,
    annotator: str,
    *,
    classes: Sequence[str],
) -> ImportReport:
    """Import answers from a file, and report the result of each line.

    Importing the same file twice changes nothing: the key of an answer is made from its question,
    person and content. A line without an annotator counts as from `annotator`. A class is given by
    its name or by its number from 0.
    """
    check_choice("read_answers", "form", form, FILE_FORMATS)
    counts: Counter[str] = Counter()
    problems: list[LineProblem] = []
    for line in _lines(stream, form):
        outcome, reason = _take(storage, line, annotator, classes)
        counts[outcome] += 1
        if reason:
            problems.append(
                LineProblem(line.number if isinstance(line, Line) else line.line, reason)
            )
    return ImportReport(**counts, problems=tuple(problems))


def _lines(stream: TextIO, form: FileFormat) -> Iterator[Line | LineProblem]:
    try:
        yield from _READERS[form](stream)
    except UnicodeDecodeError as error:
        raise LabelError(
            "Import: the file is not UTF-8 text. Save it again with that encoding (in a "
            "spreadsheet: CSV UTF-8). Lines before that place were imported."
        ) from error


def _take(
    storage: Storage, line: Line | LineProblem, annotator: str, classes: Sequence[str]
) -> tuple[str, str]:
    """Return the result of a line, and the reason if it was not taken."""
    if isinstance(line, LineProblem):
        return "refused", line.reason
    try:
        said = _understand(line, annotator, classes)
        if said is None:
            return "blank", ""
        outcome = storage.questions.answer(*said, key=_key(*said))
    except UnknownQuestion:
        return "unknown", f"question {shortened(line.question)} was never asked"
    except LabelError as error:
        return "refused", str(error).removesuffix(".")
    return _COUNTED.get(outcome, outcome), ""


def _understand(line: Line, annotator: str, classes: Sequence[str]) -> ReadAnswer | None:
    """Return what a line says, None if it has no answer; `LabelError` if it makes no sense."""
    kind, answer = line.kind, line.answer
    if isinstance(answer, str) and not answer.strip():
        answer = None
    if kind in (None, "") and answer is None:
        return None
    kind = kind or "label"
    is_word = isinstance(answer, str) and answer in WORDS and answer not in classes
    if kind == "label" and is_word:
        kind, answer = WORDS[answer], None
    label = _class_index(answer, classes) if kind == "label" else answer
    return _question_number(line.question), _name(line.annotator, annotator), kind, label


def _question_number(given: Any) -> int:
    text = str(given).strip() if isinstance(given, (int, str)) else ""
    if isinstance(given, bool) or not (text.isascii() and text.isdecimal()):
        raise LabelError(f"its question must be a number, got {shortened(given)}")
    if len(text) > len(str(_LARGEST_NUMBER)) or int(text) > _LARGEST_NUMBER:
        raise UnknownQuestion(f"question {shortened(given)}")
    return int(text)


def _name(given: Any, usual: str) -> str:
    if given is None or given == "":
        return usual
    if not isinstance(given, str) or len(given) > _LONGEST_NAME or not given.isprintable():
        raise LabelError(
            f"its annotator must be a name of at most {_LONGEST_NAME} characters, got "
            f"{shortened(given)}"
        )
    return given


def _class_index(given: Any, classes: Sequence[str]) -> int:
    if isinstance(given, (int, str)) and not isinstance(given, bool):
        wanted = plain_name(str(given))  # the name of a class may be a number too
        names = [plain_name(name) for name in classes]
        if wanted in names:
            return names.index(wanted)
        if wanted.isascii() and wanted.isdecimal() and len(wanted) < len(str(_LARGEST_NUMBER)):
            index = int(wanted)
            if index < len(classes):
                return index
    known = ", ".join(classes[:_SHOWN_CLASSES]) + (", …" if len(classes) > _SHOWN_CLASSES else "")
    raise LabelError(f"{shortened(given)} is not a class. Classes: {known}")


def _key(question: int, annotator: str, kind: AnswerKind, label: int | None) -> str:
    said = f"{annotator}\0{question}\0{kind}\0{label}"
    return "import-" + hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:32]
