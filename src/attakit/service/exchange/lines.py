"""Data exchanged with files: rows to write, lines that were read, a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from attakit.errors import SettingError, check_choice
from attakit.queries import AnswerKind
from attakit.service.storage.rows import GivenAnswer, Question, ServedSample

FileFormat = Literal["csv", "jsonl", "label-studio"]
FILE_FORMATS: tuple[FileFormat, ...] = ("csv", "jsonl", "label-studio")
_ENDINGS: dict[str, FileFormat] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "label-studio",
}
NONE, YES, NO = "none of these", "yes", "no"
# Accepted instead of a class, unless a class has this name.
WORDS: dict[Any, AnswerKind] = {NONE: "none", YES: "yes", NO: "no"}
_SHOWN = 40  # characters of a field that an error shows


@dataclass(frozen=True, slots=True)
class ExportedQuestion:
    """A question to export, with the answers so far and where to see it."""

    question: Question
    answers: tuple[GivenAnswer, ...] = ()
    image: str | None = None
    about: ServedSample | None = None  # the sample without its content
    numbers: str = ""  # the array as JSON

    @property
    def caller_id(self) -> str:
        """The sender's own id of the sample."""
        return "" if self.about is None else self.about.caller_id or ""

    @property
    def text(self) -> str:
        """The sender's text about the sample, or the sample itself if it is a text."""
        return "" if self.about is None else self.about.text or ""

    @property
    def notes(self) -> Mapping[str, str]:
        """The sender's notes."""
        return {} if self.about is None else self.about.notes or {}


@dataclass(frozen=True, slots=True)
class Line:
    """The unchecked content of one line of a file.

    `kind` None means "label"; `answer` None without a kind means a line without an answer.
    """

    number: int
    question: Any
    answer: Any = None
    kind: Any = None
    annotator: Any = None


@dataclass(frozen=True, slots=True)
class LineProblem:
    """The reason why a line was not imported."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The results of the lines of a file; `ImportBody` describes the counts."""

    taken: int = 0
    repeated: int = 0
    late: int = 0
    conflicting: int = 0
    unknown: int = 0
    refused: int = 0
    blank: int = 0
    problems: tuple[LineProblem, ...] = ()  # one per unknown or refused line, in order


def choose_file_format(path: Path, form: str | None = None) -> FileFormat:
    """Return the file format, from the file's name unless it is given.

    >>> choose_file_format(Path("answers.csv"))
    'csv'
    """
    if form is not None:
        check_choice("questions", "--format", form, FILE_FORMATS)
        return form  # type: ignore[return-value]
    if path.suffix.lower() not in _ENDINGS:
        raise SettingError(
            f"questions: cannot derive the file format from the name {path.name!r}. Known endings: "
            f"{', '.join(_ENDINGS)}. Or set it with --format."
        )
    return _ENDINGS[path.suffix.lower()]


def shortened(value: object) -> str:
    """Format a value for an error, at most one line.

    >>> shortened("x" * 1000) == repr("x" * 40 + "…")
    True
    """
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return repr(cut) if isinstance(value, str) else cut
