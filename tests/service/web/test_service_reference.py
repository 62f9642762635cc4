"""The OpenAPI description as people read it."""

from __future__ import annotations

from typing import Literal

import pytest
from fastapi import FastAPI, UploadFile
from pydantic import BaseModel, Field

from attakit.service.web.reference import read_reference


class Inner(BaseModel):
    number: int
    name: str | None = None


class Answer(BaseModel):
    key: str = Field(examples=["k1"], description="Chosen by you")
    kind: Literal["label", "skip"] = "label"
    inner: list[Inner]


@pytest.fixture
def reference():
    app = FastAPI(title="attakit", version="7")

    @app.post("/v1/questions/{question}/answer", tags=["questions"], summary="Answer")
    def answer(question: int, body: Answer) -> Inner:
        raise NotImplementedError

    @app.get("/v1/series", tags=["status"])
    def series(points: int = 200) -> list[Inner]:
        raise NotImplementedError

    @app.post("/v1/files", tags=["status"])
    def files(files: list[UploadFile]) -> None:
        raise NotImplementedError

    @app.delete("/v1/samples/{sample}")
    def forget(sample: str) -> None:
        raise NotImplementedError

    return read_reference(app.openapi(), "http://here:8000")


def operation(reference, path):
    found = [one for subject in reference.subjects for one in subject.operations]
    return next(one for one in found if one.path == path)


def test_operations_stand_under_their_subject(reference):
    names = {subject.name: len(subject.operations) for subject in reference.subjects}

    assert names == {"questions": 1, "status": 2, "service": 1}
    assert (reference.title, reference.version) == ("attakit", "7")


def test_fields_are_told_in_words(reference):
    shown = operation(reference, "/v1/questions/{question}/answer")

    assert [(f.name, f.kind, f.required) for f in shown.body] == [
        ("key", "text", True),
        ("kind", '"label" | "skip"', False),
        ("inner", "list of object", True),
        ("inner[].number", "whole number", True),
        ("inner[].name", "text or null", False),
    ]
    assert [(f.name, f.kind) for f in shown.parameters] == [("question", "whole number")]
    assert [(f.name, f.kind) for f in shown.result] == [
        ("number", "whole number"),
        ("name", "text or null"),
    ]
    assert shown.anchor == "post-v1-questions-question-answer"


def test_commands_can_be_tried(reference):
    answer = operation(reference, "/v1/questions/{question}/answer").command
    series = operation(reference, "/v1/series").command

    assert answer.splitlines() == [
        'curl -H "Authorization: Bearer $TOKEN" \\',
        '  -H "Content-Type: application/json" \\',
        '  -d \'{"key": "k1", "kind": "label", "inner": [{"number": 1, "name": "text"}]}\' \\',
        "  http://here:8000/v1/questions/1/answer",
    ]
    assert series.endswith('"http://here:8000/v1/series?points=200"')
    assert '-F "files=@image.png"' in operation(reference, "/v1/files").command
    forget = operation(reference, "/v1/samples/{sample}").command
    assert forget.startswith("curl -X DELETE ")
    assert forget.endswith("/v1/samples/SAMPLE")
