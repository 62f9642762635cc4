"""The whole cycle over HTTP, on each of the databases."""

import pytest

from attakit.service.storage import Gate


@pytest.fixture
def live(start, database):
    return start(address=database)


def get(live, path):
    response = live.client.get(path)
    assert response.status_code == 200, response.text
    return response.json()


def post(live, path, body=None, who="ada", code=200):
    headers = {"X-Annotator": who}
    response = live.client.post(path, json=body, headers=headers)
    assert response.status_code == code, response.text
    return response.json() if response.content else None


def test_an_image_is_answered_asked_about_and_labelled(live):
    (question,) = live.ask(1)
    (sample,) = live.samples
    assert get(live, f"/v1/samples/{sample}")["asked"] == "yes"

    lease = post(live, "/v1/questions/lease")
    assert post(live, "/v1/questions/lease", who="bob", code=204) is None
    assert (lease["question"], lease["sample"], lease["open"]) == (question, sample, 1)
    assert live.client.get(lease["image"]).headers["content-type"] == "image/png"
    answer = {"key": "k1", "label": 2}
    path = f"/v1/questions/{question}/answer"
    assert post(live, path, answer) == {"outcome": "accepted"}
    assert post(live, path, answer) == {"outcome": "repeated"}
    assert post(live, path, {"key": "k2", "label": 0}, who="bob") == {"outcome": "conflict"}
    live.clock.now += 6
    live.storage.questions.settle()
    assert post(live, path, {"key": "k3", "label": 0}, who="bob") == {"outcome": "late"}

    live.state.overview.changed()
    labels = get(live, "/v1/status")["labels"]
    assert (labels["asked"], labels["answered"], labels["open"]) == (1, 1, 0)
    (told,) = get(live, "/v1/questions")["questions"]
    assert (told["state"], told["label"]) == ("answered", 2)
    # What came too late or was refused is in the log too.
    assert {one["who"] for one in told["answers"]} >= {"local:ada"}


def test_an_answer_is_taken_back_and_a_question_given_back(live):
    (question,) = live.ask(1)
    post(live, "/v1/questions/lease")
    post(live, f"/v1/questions/{question}/answer", {"key": "k1", "label": 2})

    again = post(live, "/v1/questions/undo", {"key": "u1"})
    post(live, f"/v1/questions/{question}/release")

    assert again["question"] == question
    assert post(live, "/v1/questions/lease", who="bob")["question"] == question
    assert "no answer that can still" in post(
        live, "/v1/questions/undo", {"key": "u2"}, code=409
    ).get("error", "")


def test_a_version_is_promoted_and_rolled_back(live):
    live.save_version(1)
    live.storage.versions.gate(1, Gate(True, "Passed.", {"trust": float("nan")}))

    post(live, "/v1/versions/1/promote")
    assert get(live, "/v1/status")["version"] == 1
    post(live, "/v1/versions/0/promote")

    assert get(live, "/v1/status")["version"] == 0
    newest, source = get(live, "/v1/versions")["versions"]
    assert (newest["promoted"], newest["current"], source["current"]) == (True, False, True)
    assert newest["gate"]["numbers"] == {"trust": None}
    whom = [event.who for event in live.storage.events.recent(2, kind="promotion")]
    assert whom == ["local:ada", "local:ada"]


def test_learning_is_paused_and_a_sample_forgotten(live):
    live.ask(1)
    (sample,) = live.samples

    assert post(live, "/v1/learning", {"paused": True}) == {"paused": True}
    assert get(live, "/v1/status")["learning"] == "paused"
    assert live.client.delete(f"/v1/samples/{sample}").status_code == 200

    assert live.client.get(f"/v1/samples/{sample}/image").status_code == 404
    assert get(live, "/v1/questions")["questions"][0]["state"] == "forgotten"


def test_questions_leave_as_a_file_and_answers_come_back(live):
    live.ask(2)
    lines = live.client.get("/v1/export/questions").text.splitlines()

    filled = live.client.get("/v1/export/questions?format=csv").text.replace("\r\n", "\n")
    report = live.client.post("/v1/import/answers?format=csv", content=filled)

    assert len(lines) == 2
    assert report.json()["blank"] == 2


def test_people_log_in_and_numbers_are_told(live):
    token = live.storage.tokens.create("grace", "label")

    assert live.client.post("/login", data={"token": token}).url.path == "/"

    assert get(live, "/v1/status")["version"] == 0
    assert live.client.get("/readyz").json() == {"status": "ok", "problems": []}
    assert "attakit_version 0.0" in live.client.get("/metrics").text
