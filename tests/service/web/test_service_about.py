"""What callers say about their inputs: kept, shown to people who label, and exported."""

import json

import pytest
from torch import nn

from attakit.client import Client
from attakit.service.storage import Question

ABOUT = [{"id": "order 17", "text": "Left bearing", "notes": {"machine": "B", "hours": 12}}]


def ask(live, sample):
    """Put a question about a sample that was sent."""
    assert live.state.writer.flush()
    put = Question(0, sample, 0, "learn", 0, 1.0, ((1, 0.6), (0, 0.4)), live.clock())
    return live.storage.questions.put([put])[0]


def send(live, about=ABOUT, **body):
    given = {"arrays": [[1, 2.5, -3, 1234567.8]], "about": about, **body}
    return live.client.post("/v1/predict", json=given)


def test_the_callers_id_comes_back_with_the_answer(arrays):
    (answered,) = send(arrays).json()["predictions"]
    assert arrays.state.writer.flush()

    assert answered["id"] == "order 17"
    sample = arrays.client.get(f"/v1/samples/{answered['sample']}").json()
    assert (sample["id"], sample["text"]) == ("order 17", "Left bearing")
    assert sample["notes"] == {"machine": "B", "hours": "12"}


def test_whoever_labels_sees_the_numbers_and_what_is_said_about_them(start, array_model):
    columns = ("heat", "load", "tilt", "age")
    table = {"kind": "array", "shape": (4,), "columns": columns}
    live = start(input=table, model=array_model)
    sample = send(live).json()["predictions"][0]["sample"]
    ask(live, sample)

    lease = live.client.post("/v1/questions/lease").json()

    assert lease["image"] is None
    assert lease["content"] == {
        "sample": sample,
        "kind": "array",
        "id": "order 17",
        "text": "Left bearing",
        "notes": {"machine": "B", "hours": "12"},
        "columns": list(columns),
        "values": [[1.0, 2.5, -3.0, 1234570.0]],
    }
    assert live.client.get(f"/v1/samples/{sample}/content").json() == lease["content"]


def test_lists_of_questions_show_the_first_numbers_of_an_array_without_a_text(start, array_model):
    table = {"kind": "array", "shape": (4,), "columns": ("heat", "load", "tilt", "age")}
    live = start(input=table, model=array_model)
    sent = live.client.post("/v1/predict", json={"arrays": [[1, 2.5, -3, 1234567.0]]}).json()
    live.state.writer.flush()
    ask(live, sent["predictions"][0]["sample"])
    question = live.client.post("/v1/questions/lease").json()["question"]
    live.client.post(f"/v1/questions/{question}/answer", json={"key": "k", "label": 0})

    (shown,) = live.client.get("/v1/questions").json()["questions"]
    (own,) = live.client.get("/v1/questions/mine").json()["answers"]

    assert shown["text"] == own["text"] == "heat 1, load 2.5, tilt -3, age 1.23e+06"


def test_images_take_it_in_a_form(live, image_file):
    files = [("files", ("a.png", image_file("PNG"), "image/png"))] * 2
    about = json.dumps([{"id": "one"}, None])
    response = live.client.post("/v1/predict", files=files, data={"about": about})
    first, second = response.json()["predictions"]
    ask(live, first["sample"])

    assert (first["id"], "id" in second) == ("one", False)
    lease = live.client.post("/v1/questions/lease").json()
    assert lease["image"].endswith("/image")
    assert lease["content"]["id"] == "one"


@pytest.mark.parametrize(
    ("about", "complaint"),
    [
        ({}, "must be a list with one entry per input"),
        ([{}, {}], "has 2 entries for 1 inputs"),
        ([{"name": "x"}], "may only have an id, a text and notes"),
        ([{"id": "x" * 201}], "at most 200 characters"),
        ([{"text": "\x00"}], "without the zero character"),
        ([{"notes": {"a": ["b"]}}], "The note in 'about' must be text"),
        ([{"notes": ["a"]}], "at most 50 names with values"),
        ([{"notes": {str(n): "x" for n in range(51)}}], "at most 50 names with values"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(arrays, about, complaint):
    response = send(arrays, about)

    assert response.status_code == 422
    assert complaint in response.json()["error"]


def test_a_form_with_broken_json_is_refused(live, image_file):
    files = [("files", ("a.png", image_file("PNG"), "image/png"))]
    response = live.client.post("/v1/predict", files=files, data={"about": "{"})

    assert response.status_code == 422
    assert "'about' is not valid JSON" in response.json()["error"]


def test_a_forgotten_sample_loses_what_was_said_about_it(arrays):
    sample = send(arrays).json()["predictions"][0]["sample"]
    ask(arrays, sample)
    arrays.client.delete(f"/v1/samples/{sample}")

    left = arrays.client.get(f"/v1/samples/{sample}/content").json()
    assert (left["id"], left["text"], left["notes"], left["values"]) == (None, None, {}, None)


@pytest.mark.parametrize("form", ["jsonl", "csv", "label-studio"])
def test_exports_show_it(arrays, form):
    ask(arrays, send(arrays).json()["predictions"][0]["sample"])

    text = arrays.client.get(f"/v1/export/questions?format={form}").text

    for part in ("order 17", "Left bearing", "machine", "2.5"):
        assert part in text


class Letters(nn.Module):
    """A model of texts: an embedding of letters."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(64, 4), nn.Linear(4, 3)

    def forward(self, inputs):
        return self.head(self.embedding(inputs).mean(dim=1))


@pytest.fixture
def texts(start):
    table = {"kind": "text", "tokenizer": "ngrams", "vocabulary": 64, "length": 8}
    return start(input=table, model=Letters)


def test_texts_are_answered_and_shown_as_they_are(texts):
    body = {"texts": ["Pump rattles", "All quiet"], "about": [{"id": "a"}, {"id": "b"}]}
    first, _ = texts.client.post("/v1/predict", json=body).json()["predictions"]
    ask(texts, first["sample"])

    content = texts.client.post("/v1/questions/lease").json()["content"]
    assert (content["kind"], content["text"], content["id"]) == ("text", "Pump rattles", "a")
    (shown,) = texts.client.get("/v1/questions").json()["questions"]
    assert (shown["image"], shown["text"], shown["id"]) == (None, "Pump rattles", "a")


def test_the_client_sends_texts_and_what_is_known_of_them(texts):
    with Client("http://localhost", transport=texts.client._transport) as client:
        (answered,) = client.predict_texts(["Pump rattles"], about=[{"id": "a", "notes": {"k": 1}}])
        assert texts.state.writer.flush()
        content = client.content(answered.sample)

    assert (answered.id, content.text, content.notes) == ("a", "Pump rattles", {"k": "1"})


def test_the_description_names_what_may_be_said(texts):
    paths = texts.client.get("/openapi.json").json()["paths"]
    schema = paths["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]

    assert set(schema["properties"]) == {"texts", "about"}
    assert schema["required"] == ["texts"]
