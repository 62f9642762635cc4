"""Questions on their way out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO

from attakit.errors import check_choice
from attakit.service.exchange.images import as_data_url, at_service
from attakit.service.exchange.json_lines import lines_of
from attakit.service.exchange.label_studio import tasks_of
from attakit.service.exchange.lines import FILE_FORMATS, ExportedQuestion, FileFormat
from attakit.service.exchange.spreadsheet import table_of
from attakit.service.storage import GivenAnswer, Question, Storage

_TEXTS: dict[str, Callable[[Iterable[ExportedQuestion], Sequence[str]], Iterator[str]]] = {
    "csv": table_of,
    "jsonl": lines_of,
    "label-studio": tasks_of,
}
_PIECE = 100_000  # characters


def write_questions(
    storage: Storage,
    stream: TextIO,
    form: FileFormat,
    *,
    classes: Sequence[str],
    everything: bool = False,
    image_url: str | None = None,
) -> int:
    """Write questions for people who label elsewhere; return how many.

    Whether a question is for learning or for the audit is not told, so that answers stay fair.

    Parameters
    ----------
    storage
        Holds the questions.
    stream
        Gets text; line ends are written as they should be, so open files with newline="".
    form
        "csv", "jsonl" or "label-studio".
    classes
        Names, in the order of the labels.
    everything
        Closed questions and the answers that count too, instead of open questions alone.
    image_url
        Address of the service. Images are then given as its addresses; otherwise Label Studio's
        tasks hold them, and other formats name the sample only.
    """
    check_choice("write_questions", "form", form, FILE_FORMATS)
    if image_url is not None:
        at_service(image_url, "")  # complains before anything is written
    asked = _Counted(_asked(storage, form, everything=everything, image_url=image_url))
    for text in _TEXTS[form](asked, classes):
        stream.write(text)
    return asked.count


def questions_in_pieces(
    storage: Storage, form: FileFormat, *, classes: Sequence[str], everything: bool = False
) -> Iterator[str]:
    """What `write_questions` writes, in pieces, of which few are in memory at a time."""
    asked = _asked(storage, form, everything=everything)
    waiting: list[str] = []
    size = 0
    for text in _TEXTS[form](asked, classes):
        waiting.append(text)
        size += len(text)
        if size >= _PIECE:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join(waiting)


class _Counted:
    """Counts questions while they are taken."""

    def __init__(self, asked: Iterable[ExportedQuestion]) -> None:
        self.asked = asked
        self.count = 0

    def __iter__(self) -> Iterator[ExportedQuestion]:
        for one in self.asked:
            self.count += 1
            yield one


def _asked(
    storage: Storage, form: FileFormat, *, everything: bool, image_url: str | None = None
) -> Iterator[ExportedQuestion]:
    """Questions one after the other: with their images they would not fit into memory."""
    for question in _questions(storage, everything=everything):
        votes = _votes(storage, question) if everything else ()
        image = _image(storage, question, image_url, inside=form == "label-studio")
        yield ExportedQuestion(question, votes, image)


def _questions(storage: Storage, *, everything: bool) -> Iterator[Question]:
    """The oldest first; what was forgotten, and so lost its guesses, never leaves."""
    newest_first = storage.questions.recent(storage.questions.counts().asked)
    for question in reversed(newest_first):
        if question.state == "open" or (everything and question.guesses):
            yield question


def _votes(storage: Storage, question: Question) -> tuple[GivenAnswer, ...]:
    given = storage.questions.answers(question.question)
    return tuple(one for one in given if one.outcome == "accepted" and not one.withdrawn)


def _image(
    storage: Storage, question: Question, image_url: str | None, *, inside: bool
) -> str | None:
    if image_url is not None:
        return at_service(image_url, question.sample)
    if not inside:
        return None
    return as_data_url(storage.samples.contents([question.sample]).get(question.sample))
