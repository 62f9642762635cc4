"""Export questions to files for other labelling tools, and import the answers."""

from __future__ import annotations

from io import StringIO
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from attakit.client.bodies import ImportBody
from attakit.service.exchange import FileFormat, questions_in_pieces, read_answers
from attakit.service.storage.rows import field_values
from attakit.service.web.errors import documented, refuse
from attakit.service.web.security import Administrating
from attakit.service.web.state import AppState, Service

router = APIRouter(prefix="/v1", tags=["exchange"])

_KINDS: dict[FileFormat, tuple[str, str]] = {
    "jsonl": ("application/jsonl", "questions.jsonl"),
    "csv": ("text/csv; charset=utf-8", "questions.csv"),
    "label-studio": ("application/json", "questions.json"),
}
# Content types of a file of another format; programs that do not care send all kinds of them.
_OTHER: dict[FileFormat, set[str]] = {
    "jsonl": {"text/csv"},
    "csv": {"application/json", "application/jsonl"},
    "label-studio": {"text/csv", "application/jsonl"},
}
_TEXT = {"schema": {"type": "string"}}
_PROBLEMS = 100

FormatQuery = Annotated[FileFormat, Query(alias="format", description="Kind of file")]


@router.get(
    "/export/questions",
    response_class=Response,
    responses={
        200: {
            "description": "A file",
            "content": {
                "application/jsonl": _TEXT,
                "text/csv": _TEXT,
                "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            },
        },
        **documented(),
    },
    summary="Questions as a file",
)
def export(
    service: Service,
    _caller: Administrating,
    form: FormatQuery = "jsonl",
    everything: Annotated[
        bool, Query(description="Also export closed questions and their answers")
    ] = False,
) -> Response:
    """Export JSON lines, a table, or tasks for Label Studio."""
    pieces = questions_in_pieces(
        service.storage, form, classes=service.settings.classes, everything=everything
    )
    kind, name = _KINDS[form]
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pieces, media_type=kind, headers=headers)


@router.post(
    "/import/answers",
    responses=documented(415),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/jsonl": _TEXT,
                "text/csv": _TEXT,
                "application/json": {"schema": {}},
            },
        }
    },
    summary="Answers from a file",
)
async def take(
    request: Request, service: Service, caller: Administrating, form: FormatQuery = "jsonl"
) -> ImportBody:
    """Import each line completely or not at all. The same file twice changes nothing."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _OTHER[form]:
        raise refuse(
            415, f"The content type {kind!r} does not fit format={form}. Change one of them."
        )
    body = await request.body()
    if not body:
        raise refuse(422, "The request holds no file. Send its content as the body.")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse(422, "The file is not UTF-8 text. Save it with that encoding.") from error
    return await run_in_threadpool(_take, service, text, form, caller.name)


def _take(service: AppState, text: str, form: FileFormat, who: str) -> ImportBody:
    file = StringIO(text, newline="")
    report = read_answers(service.storage, file, form, who, classes=service.settings.classes)
    service.overview.changed()
    problems = [f"Line {one.line}: {one.reason}." for one in report.problems[:_PROBLEMS]]
    return ImportBody.model_validate({**field_values(report), "problems": problems})
