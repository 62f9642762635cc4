"""/v1/samples/N/content: the content of a sample that is not a picture, and its notes."""

from __future__ import annotations

from fastapi import APIRouter

from attakit.client.bodies import ContentBody
from attakit.service.storage.rows import ServedSample
from attakit.service.web.errors import documented
from attakit.service.web.requests import SampleName
from attakit.service.web.samples import find_sample
from attakit.service.web.security import Labelling
from attakit.service.web.state import AppState, Service

router = APIRouter(tags=["samples"])

_DIGITS = 6  # enough for people
_SHOWN_TEXT = 200  # characters
_SHOWN_NUMBERS = 6


@router.get("/v1/samples/{sample}/content", responses=documented(404), summary="A sample's content")
def show_content(sample: SampleName, service: Service, _caller: Labelling) -> ContentBody:
    """Return the numbers or the text of a sample, and its sender's notes."""
    return content_of(service, find_sample(service, sample))


def content_of(service: AppState, served: ServedSample) -> ContentBody:
    """Return what people see of a sample; numbers are rounded to six digits."""
    table = service.settings.input
    return ContentBody(
        sample=served.sample,
        kind=table.kind,
        id=served.caller_id,
        text=served.text,
        notes=dict(served.notes or {}),
        columns=list(table.columns),
        values=_numbers(service, served),
    )


def words_of(service: AppState, sample: str) -> str | None:
    """Return the beginning of a sample's text, or of its numbers if it has none."""
    about = service.storage.samples.about(sample)
    if about is not None and about.text:
        return about.text[:_SHOWN_TEXT]
    served = service.storage.samples.get(sample) if service.settings.input.kind == "array" else None
    rows = None if served is None else _numbers(service, served)
    if not rows:
        return None
    names = service.settings.input.columns or [""] * _SHOWN_NUMBERS
    shown = list(zip(names, rows[0], strict=False))[:_SHOWN_NUMBERS]
    text = ", ".join(f"{name} {value:.3g}".strip() for name, value in shown)
    return text if len(rows) == 1 and len(shown) == len(rows[0]) else f"{text}, …"


def _numbers(service: AppState, served: ServedSample) -> list[list[float]] | None:
    """Return an array as rows of its last axis; None if it is not an array, or gone."""
    if service.settings.input.kind != "array" or served.content is None:
        return None
    array = service.inputs.read_stored_array(served.content)
    rows = array.reshape(-1, array.shape[-1]).tolist()
    return [[float(f"{value:.{_DIGITS}g}") for value in row] for row in rows]
