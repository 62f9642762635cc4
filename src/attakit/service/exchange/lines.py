"""What passes between the service and files: rows to write, lines that were read, a report."""

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
# What may be written in the place of a class, unless a class is called so.
WORDS: dict[Any, AnswerKind] = {NONE: "none", YES: "yes", NO: "no"}
_SHOWN = 40  # characters of a field that an error shows


@dataclass(frozen=True, slots=True)
class ExportedQuestion:
    """A question on its way out, with what people said so far and where it can be seen."""

    question: Question
    answers: tuple[GivenAnswer, ...] = ()
    image: str | None = None
    about: ServedSample | None = None  # the sample without its content
    numbers: str = ""  # of an array, as JSON

    @property
    def caller_id(self) -> str:
        """What the sender calls the sample."""
        return "" if self.about is None else self.about.caller_id or ""

    @property
    def text(self) -> str:
        """What the sender says of the sample, or the sample itself if it is a text."""
        return "" if self.about is None else self.about.text or ""

    @property
    def notes(self) -> Mapping[str, str]:
        """The sender's notes."""
        return {} if self.about is None else self.about.notes or {}


@dataclass(frozen=True, slots=True)
class Line:
    """What one line of a file says, unchecked.

    `kind` None stands for "label"; `answer` None, without a kind, for a line not filled in.
    """

    number: int
    question: Any
    answer: Any = None
    kind: Any = None
    annotator: Any = None


@dataclass(frozen=True, slots=True)
class LineProblem:
    """Why a line was not taken."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of the lines of a file; `ImportBody` describes the counts."""

    taken: int = 0
    repeated: int = 0
    late: int = 0
    conflicting: int = 0
    unknown: int = 0
    refused: int = 0
    blank: int = 0
    problems: tuple[LineProblem, ...] = ()  # for every unknown and refused line, in order


def choose_file_format(path: Path, form: str | None = None) -> FileFormat:
    """The kind of file that is meant, by its name unless it is given.

    >>> choose_file_format(Path("answers.csv"))
    'csv'
    """
    if form is not None:
        check_choice("questions", "--format", form, FILE_FORMATS)
        return form  # type: ignore[return-value]
    if path.suffix.lower() not in _ENDINGS:
        raise SettingError(
            f"questions: cannot tell the kind of file from the name {path.name!r}. Known endings: "
            f"{', '.join(_ENDINGS)}; or say it with --format."
        )
    return _ENDINGS[path.suffix.lower()]


def shortened(value: object) -> str:
    """A value as an error shows it: not more than a line of it.

    >>> shortened("x" * 1000) == repr("x" * 40 + "…")
    True
    """
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return repr(cut) if isinstance(value, str) else cut
