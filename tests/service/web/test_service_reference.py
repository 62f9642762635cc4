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

    (form,) = shown.forms
    assert form.kind == "application/json"
    assert [(f.name, f.kind, f.required) for f in form.fields] == [
        ("key", "text", True),
        ("kind", '"label" | "skip"', False),
        ("inner", "list of objects", True),
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
    answer = operation(reference, "/v1/questions/{question}/answer").commands[0]
    series = operation(reference, "/v1/series").commands[0]

    assert answer.splitlines() == [
        'curl -H "Authorization: Bearer $TOKEN" \\',
        '  -H "Content-Type: application/json" \\',
        '  -d \'{"key": "k1", "kind": "label", "inner": [{"number": 1, "name": "text"}]}\' \\',
        "  http://here:8000/v1/questions/1/answer",
    ]
    assert series.endswith('"http://here:8000/v1/series?points=200"')
    assert '-F "files=@image.png"' in operation(reference, "/v1/files").commands[0]
    forget = operation(reference, "/v1/samples/{sample}").commands[0]
    assert forget.startswith("curl -X DELETE ")
    assert forget.endswith("/v1/samples/SAMPLE")


def read_live(live):
    return read_reference(live.client.app.openapi(), "http://here:8000")


def test_images_can_be_sent_in_two_forms(live):
    shown = operation(read_live(live), "/v1/predict")

    told = {form.kind: [(f.name, f.kind) for f in form.fields] for form in shown.forms}
    assert told["multipart/form-data"] == [("files", "list of files"), ("about", "text")]
    assert told["application/json"][:2] == [
        ("images", "list of base64 texts"),
        ("about", "list of objects"),
    ]
    by_file, by_text = shown.commands
    assert '-F "files=@image.png"' in by_file
    assert '{"images": ["iVBOR' in by_text


def test_a_service_of_arrays_shows_their_shape(arrays):
    shown = operation(read_live(arrays), "/v1/predict")

    (form,) = shown.forms
    field = form.fields[0]
    assert (field.name, field.kind) == ("arrays", "list of lists of numbers")
    assert field.text.startswith("Numbers of shape 4,")
    assert '-d \'{"arrays": [[0.5, 0.5, 0.5, 0.5]], "about": [{' in shown.commands[0]


@pytest.mark.parametrize("kind", ["live", "arrays"])
def test_the_shown_json_is_answered(kind, request):
    service = request.getfixturevalue(kind)
    command = operation(read_live(service), "/v1/predict").commands[-1]
    body = command.partition("-d '")[2].partition("'")[0]

    response = service.client.post(
        "/v1/predict", content=body, headers={"Content-Type": "application/json"}
    )

    assert response.status_code == 200, response.text


def test_files_of_answers_are_sent_in_one_way(live):
    shown = operation(read_live(live), "/v1/import/answers")

    assert len(shown.commands) == 1
    assert "--data-binary @file" in shown.commands[0]


def test_the_page_shows_every_form_and_where_tokens_are_made(live):
    page = live.client.get("/docs").text

    for told in ("Request as multipart/form-data", "list of files", "list of base64 texts"):
        assert told in page
    assert "attakit token create my-name --role predict --folder FOLDER" in page
