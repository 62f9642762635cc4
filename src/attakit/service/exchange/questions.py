"""Export questions."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from typing import TextIO
from urllib.parse import quote

import numpy as np
from PIL import Image

from attakit.errors import SettingError, check_choice
from attakit.service.exchange.json_lines import lines_of
from attakit.service.exchange.label_studio import tasks_of
from attakit.service.exchange.lines import FILE_FORMATS, ExportedQuestion, FileFormat
from attakit.service.exchange.spreadsheet import table_of
from attakit.service.images import open_image, to_png
from attakit.service.storage import Question, Storage

_TEXTS: dict[str, Callable[[Iterable[ExportedQuestion], Sequence[str]], Iterator[str]]] = {
    "csv": table_of,
    "jsonl": lines_of,
    "label-studio": tasks_of,
}
_PIECE = 100_000  # characters
_PIXELS = 50_000_000  # limit for an image inside a file


def write_questions(
    storage: Storage,
    stream: TextIO,
    form: FileFormat,
    *,
    classes: Sequence[str],
    everything: bool = False,
    image_url: str | None = None,
) -> int:
    """Write questions for people who label elsewhere; returns their number.

    The file does not reveal which questions are for the audit, so that answers stay fair.

    Parameters
    ----------
    stream
        The file, opened with newline="", because line ends are written explicitly.
    everything
        Also write closed questions, and the answers that count.
    image_url
        The service's address. Images are then links to it. Otherwise Label Studio's tasks contain
        the images, and other formats only name the sample.
    """
    check_choice("write_questions", "form", form, FILE_FORMATS)
    if image_url is not None:
        at_service(image_url, "")  # raises before anything is written
    found = _find_questions(storage, everything=everything)
    asked = _exported(storage, found, form, everything=everything, image_url=image_url)
    stream.writelines(_TEXTS[form](asked, classes))
    return len(found)


def questions_in_pieces(
    storage: Storage, form: FileFormat, *, classes: Sequence[str], everything: bool = False
) -> Iterator[str]:
    """Yield what `write_questions` writes, in pieces, to save memory."""
    found = _find_questions(storage, everything=everything)
    asked = _exported(storage, found, form, everything=everything)
    waiting: list[str] = []
    size = 0
    for text in _TEXTS[form](asked, classes):
        waiting.append(text)
        size += len(text)
        if size >= _PIECE:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join(waiting)


def _find_questions(storage: Storage, *, everything: bool) -> list[Question]:
    """Return the oldest first. Forgotten samples are never exported.

    An open question whose answer only waits to be settled is excluded, unless `everything` is set:
    a second answer would contradict the first, or be too late.
    """
    if not everything:
        return [*storage.questions.unanswered()]
    newest_first = storage.questions.recent(storage.questions.counts().asked)
    return [one for one in newest_first[::-1] if one.guesses]


def _exported(
    storage: Storage,
    found: Iterable[Question],
    form: FileFormat,
    *,
    everything: bool,
    image_url: str | None = None,
) -> Iterator[ExportedQuestion]:
    """Yield questions one by one: with their images they would not fit into memory."""
    for question in found:
        name = question.sample
        image = None
        if image_url is not None:
            image = at_service(image_url, name)
        elif form == "label-studio":
            image = as_data_url(storage.samples.contents([name]).get(name))
        given = storage.questions.answers(question.question) if everything else ()
        votes = tuple(one for one in given if one.outcome == "accepted" and not one.withdrawn)
        numbers = as_numbers(storage.samples.array(name))
        yield ExportedQuestion(question, votes, image, storage.samples.about(name), numbers)


def as_numbers(content: bytes | None) -> str:
    """Return the numbers of a stored array as JSON; empty if there is none."""
    if content is None:
        return ""
    try:
        return json.dumps(np.load(BytesIO(content), allow_pickle=False).tolist())
    except (ValueError, OSError, EOFError):
        return ""


def as_data_url(content: bytes | None) -> str | None:
    """Return a PNG inside a URL, made from the pixels; None if there is no image."""
    if content is None:
        return None
    try:
        with open_image(content, _PIXELS) as image:
            drawn = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return "data:image/png;base64," + base64.b64encode(to_png(drawn)).decode("ascii")


def at_service(base: str, sample: str) -> str:
    """Return the address of a sample's picture at the service.

    >>> at_service("https://labels.example/", "a/b 1")
    'https://labels.example/v1/samples/a%2Fb%201/image'
    """
    if not base.startswith(("http://", "https://")):
        raise SettingError(
            f"questions: --image-url must be the address of the service, such as "
            f"https://labels.example, got {base!r}."
        )
    return f"{base.rstrip('/')}/v1/samples/{quote(sample, safe='')}/image"
