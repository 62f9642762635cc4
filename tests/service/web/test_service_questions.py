"""/v1/questions: leasing, answering, undoing, giving back."""

import json

import pytest

from attakit.service.storage import LabelRules, Turn

JSON = {"content-type": "application/json"}


def test_a_leased_question_shows_the_guesses_and_the_picture(live):
    (number,) = live.ask()

    response = live.client.post("/v1/questions/lease")

    lease = response.json()
    assert response.status_code == 200
    assert lease["question"] == number
    assert [guess["class"] for guess in lease["guesses"]] == ["dog", "cat"]
    assert "purpose" not in lease
    assert lease["open"] == 1
    image = live.client.get(lease["image"])
    assert image.headers["content-type"] == "image/png"
    assert image.headers["cache-control"] == "no-store"


def test_a_question_that_was_just_answered_is_not_counted_as_one_to_answer(live):
    first, second = live.ask(2)
    live.client.post(f"/v1/questions/{first}/answer", json={"key": "k1", "label": 2})

    lease = live.client.post("/v1/questions/lease").json()

    assert (lease["question"], lease["open"]) == (second, 1)


def test_without_questions_there_is_nothing_to_lease(live):
    response = live.client.post("/v1/questions/lease")

    assert response.status_code == 204
    assert response.content == b""


def test_an_answer_posted_twice_counts_once(live):
    (number,) = live.ask()
    body = {"key": "k1", "kind": "label", "label": 2}

    first = live.client.post(f"/v1/questions/{number}/answer", json=body)
    second = live.client.post(f"/v1/questions/{number}/answer", json=body)

    assert (first.json(), second.json()) == ({"outcome": "accepted"}, {"outcome": "repeated"})
    assert len(live.storage.questions.answers(number)) == 1


def test_an_answer_can_be_taken_back_until_it_counts(live):
    (number,) = live.ask()
    live.client.post(f"/v1/questions/{number}/answer", json={"key": "k1", "label": 2})

    undone = live.client.post("/v1/questions/undo", json={"key": "u1"})
    live.client.post(f"/v1/questions/{number}/answer", json={"key": "k2", "label": 1})
    live.clock.now += 6
    live.storage.questions.settle()
    late = live.client.post("/v1/questions/undo", json={"key": "u2"})

    assert undone.json()["question"] == number
    assert undone.json()["until"] > live.clock.now
    assert late.status_code == 409
    (settled,) = live.storage.questions.settled()
    assert settled.label == 1


def test_an_undone_question_is_held_even_if_the_other_answers_decide_it(start):
    live = start(rules=LabelRules("majority", answers=3, settle_seconds=100, classes=3))
    (number,) = live.ask(1)

    def post(path, who, **body):
        return live.client.post(f"/v1/questions/{path}", json=body, headers={"X-Annotator": who})

    for who, label in (("ada", 1), ("bob", 2), ("cid", 1)):
        said = post(f"{number}/answer", who, key=who, label=label)
        assert said.json() == {"outcome": "accepted"}

    undone = post("undo", "bob", key="u1").json()

    assert (undone["question"], undone["until"]) == (number, live.clock.now + 60)
    assert post("lease", "bob").json()["question"] == number
    assert post("undo", "bob", key="u1").json()["until"] == undone["until"]
    live.clock.now += 61
    assert post("undo", "bob", key="u1").status_code == 409


@pytest.mark.parametrize("key", ["", "x" * 101, "zero\x00", "half\ud800", "two words"])
def test_a_key_that_cannot_be_kept_is_refused(live, key):
    (number,) = live.ask()

    for path in (f"{number}/answer", "undo"):
        body = json.dumps({"key": key, **({"kind": "skip"} if path != "undo" else {})})
        refused = live.client.post(f"/v1/questions/{path}", content=body, headers=JSON)
        assert refused.status_code == 422


def test_a_page_may_hold_several_questions(live):
    first, second, third = live.ask(3)

    one = live.client.post("/v1/questions/lease", json={"besides": []}).json()
    two = live.client.post("/v1/questions/lease", json={"besides": [first]}).json()
    other = live.client.post("/v1/questions/lease", headers={"X-Annotator": "b"}).json()

    assert (one["question"], two["question"], other["question"]) == (first, second, third)


def test_a_page_that_holds_enough_gets_no_further_question(live):
    asked = live.ask(7)

    replies = [
        live.client.post("/v1/questions/lease", json={"besides": asked[:held]}) for held in range(6)
    ]

    assert [reply.status_code for reply in replies] == [200] * 5 + [204]
    described = live.client.get("/openapi.json").json()["paths"]["/v1/questions/lease"]["post"]
    assert "you hold 5 questions already" in described["responses"]["204"]["description"]


def test_a_question_given_back_goes_to_somebody_else(live):
    (number,) = live.ask()
    live.client.post("/v1/questions/lease")

    live.client.post(f"/v1/questions/{number}/release")
    other = live.client.post("/v1/questions/lease", headers={"X-Annotator": "bob"})

    assert other.json()["question"] == number


def test_recent_questions_tell_who_said_what(live):
    first, second = live.ask(2)
    live.client.post(f"/v1/questions/{first}/answer", json={"key": "k", "kind": "none"})

    told = live.client.get("/v1/questions?limit=5").json()["questions"]

    assert [one["question"] for one in told] == [second, first]
    (answer,) = told[1]["answers"]
    assert (answer["who"], answer["kind"], answer["label"]) == ("local", "none", None)
    assert "purpose" not in told[0]


def test_recent_questions_tell_which_answers_count(live):
    (number,) = live.ask()

    def answer(who, label):
        body = {"key": f"{who}-{label}", "label": label}
        live.client.post(f"/v1/questions/{number}/answer", json=body, headers={"X-Annotator": who})

    answer("ada", 2)
    answer("ada", 1)
    answer("bob", 2)
    live.clock.now += 6
    live.storage.questions.settle()
    answer("cyd", 0)

    (told,) = live.client.get("/v1/questions").json()["questions"]
    assert [(one["outcome"], one["counts"]) for one in told["answers"]] == [
        ("accepted", True),
        ("conflict", False),
        ("repeated", False),
        ("late", False),
    ]


def test_what_people_answered_is_counted_for_them(live):
    first, _ = live.ask(2)
    live.client.post(f"/v1/questions/{first}/answer", json={"key": "k", "label": 0})

    lease = live.client.post("/v1/questions/lease").json()

    assert lease["answered_by_you"] == 1
    assert lease["budget_left"] == 298


def test_a_forgotten_sample_has_no_picture_and_no_question(live):
    live.ask(1)
    name = live.samples[0]

    assert live.client.delete(f"/v1/samples/{name}").json() == {"done": True}

    assert live.client.post("/v1/questions/lease").status_code == 204
    assert live.client.get(f"/v1/samples/{name}/image").status_code == 404
    left = live.client.get(f"/v1/samples/{name}").json()
    assert (left["asked"], left["class"], left["confidence"]) == ("forgotten", None, None)


def test_that_a_stopped_learner_still_holds_a_forgotten_sample_is_told(live, monkeypatch):
    taken, untaken = live.serve(2)
    live.storage.turns.plan(Turn(0, (taken,), allowance=0))
    monkeypatch.setattr(live.state.overview, "learner_runs", lambda: False)

    codes = [live.client.delete(f"/v1/samples/{name}").status_code for name in (taken, untaken)]

    assert codes == [202, 200]


def test_a_file_leaves_while_it_is_made(live):
    live.ask(3)

    with live.client.stream("GET", "/v1/export/questions?format=label-studio") as response:
        sent = "".join(response.iter_text())

    assert "content-length" not in response.headers
    assert len(json.loads(sent)) == 3


def test_questions_leave_as_a_file_and_answers_come_back(live):
    number, _ = live.ask(2)

    table = live.client.get("/v1/export/questions?format=csv")
    lines = live.client.get("/v1/export/questions")
    tasks = live.client.get("/v1/export/questions?format=label-studio")
    answers = [{"question": number, "answer": "owl"}, {"question": 99, "answer": 0}]
    body = "".join(json.dumps(one) + "\n" for one in answers)
    taken = live.client.post("/v1/import/answers?format=jsonl", content=body).json()

    assert table.headers["content-type"].startswith("text/csv")
    assert len(lines.text.splitlines()) == 2
    assert len(tasks.json()) == 2
    assert (taken["taken"], taken["unknown"]) == (1, 1)
    assert taken["problems"] == ["Line 2: question 99 was never asked."]
    assert live.storage.questions.answers(number)[0].label == 2


def test_a_file_that_is_no_text_is_refused(live):
    response = live.client.post("/v1/import/answers", content=b"\xff\xfe\xff")

    assert response.status_code == 422


def test_a_question_may_propose_a_class_and_be_answered_with_yes_or_no(live):
    first, second = live.ask(2, proposed=1)
    lease = live.client.post("/v1/questions/lease").json()
    assert (lease["question"], lease["proposed"]) == (first, 1)

    for number, kind in ((first, "no"), (second, "yes")):
        said = {"key": f"k{number}", "kind": kind}
        response = live.client.post(f"/v1/questions/{number}/answer", json=said)
        assert response.json() == {"outcome": "accepted"}

    newest, oldest = live.client.get("/v1/questions").json()["questions"]
    assert [(one["kind"], one["label"]) for one in oldest["answers"]] == [("no", None)]
    assert [(one["kind"], one["label"]) for one in newest["answers"]] == [("label", 1)]
    assert newest["proposed"] == oldest["proposed"] == 1


def test_yes_to_a_question_about_the_class_is_refused_with_what_to_do(live):
    (number,) = live.ask()
    said = {"key": "k", "kind": "yes"}
    response = live.client.post(f"/v1/questions/{number}/answer", json=said)

    assert response.status_code == 422
    assert "asks for the class and proposes none" in response.json()["error"]


def test_cheap_questions_leave_a_fraction_of_a_label(start):
    live = start(labels={"budget": 5, "yes_no_price": 0.25})
    live.ask(3, proposed=1)

    assert live.client.get("/v1/status").json()["labels"]["left"] == 4.25
    assert live.client.post("/v1/questions/lease").json()["budget_left"] == 4.25
