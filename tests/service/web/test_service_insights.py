"""What the dashboard knows beyond the status: the audit by class, people, events, and weights."""

import pytest

from attakit.service.learner.audit import served_accuracy
from attakit.service.storage import LabelRules, Question


@pytest.fixture
def live(start, database):
    """A service on each of the databases."""
    return start(address=database)


def audit(live, *said):
    """Have audit questions answered and settled: each (label or None, served guess, source)."""
    names = live.serve(len(said))
    served = live.storage.samples.guesses(names)
    put = [
        Question(
            0,
            name,
            0,
            "audit",
            0,
            1.0,
            ((1, 0.6),),
            live.clock(),
            source_guess=source,
            source_entropy=0.1,
        )
        for name, (_, source) in zip(names, said, strict=True)
    ]
    for number, (label, _) in zip(live.storage.questions.put(put), said, strict=True):
        kind = "none" if label is None else "label"
        live.storage.questions.answer(number, "ada", kind, label, f"k{number}")
    live.clock.now += 6
    live.storage.questions.settle()
    return [served[name] for name in names]


def test_the_audit_is_counted_by_class_and_as_a_confusion_matrix(live):
    guesses = audit(live, (0, 0), (1, 0), (None, 2), (1, 1))

    body = live.client.get("/v1/audit").json()

    right = [sum(g == label == 0 for g, label in zip(guesses, (0, 1, None, 1), strict=True))]
    assert (body["count"], body["source_known"]) == (4, True)
    assert [one["count"] for one in body["classes"]] == [1, 2, 0]
    assert [one["source_right"] for one in body["classes"]] == [1, 1, 0]
    assert body["classes"][0]["right"] == right[0]
    cells = {(one["label"], one["guess"]): one["count"] for one in body["cells"]}
    assert sum(cells.values()) == 4
    assert cells[None, guesses[2]] == 1


def test_the_source_model_is_measured_on_the_same_samples(live):
    audit(live, (0, 0), (1, 0), (None, 2), (1, 1))

    found = served_accuracy(live.storage, 200, 0.9)

    assert (found.source.value, found.source.count, found.served.count) == (0.5, 4, 4)
    assert found.numbers()["source_accuracy"] == 0.5


def test_people_are_listed_with_how_often_they_agree(start, database):
    rules = LabelRules(policy="majority", answers=2, settle_seconds=5, classes=3)
    live = start(rules=rules, address=database)
    first, second, third = live.ask(3)
    say = live.storage.questions.answer
    for number, who, kind, label in (
        (first, "ada", "label", 1),
        (first, "bob", "label", 1),
        (second, "ada", "label", 0),
        (second, "bob", "label", 2),
        (third, "ada", "skip", None),
    ):
        say(number, who, kind, label, f"{who}{number}", flagged=who == "bob")

    ada, bob = live.client.get("/v1/people").json()["people"]

    assert (ada["who"], ada["answers"], ada["skipped"], ada["flagged"]) == ("ada", 3, 1, 0)
    assert (ada["compared"], ada["agreed"], ada["last"]) == (2, 1, live.clock.now)
    assert (bob["who"], bob["answers"], bob["flagged"]) == ("bob", 2, 2)


def test_agreement_with_the_model_is_counted_on_the_audit(live):
    audit(live, (1, 0), (0, 0))

    (ada,) = live.client.get("/v1/people").json()["people"]
    assert (ada["audited"], ada["model_agreed"], ada["compared"]) == (2, 1, 0)


def test_events_are_told_in_sentences_and_answers_are_left_out(live):
    live.ask()
    live.client.post("/v1/learning", json={"paused": True})
    live.storage.events.add("alarm", "learner", what="mix", text="The mix rose.")

    events = live.client.get("/v1/events").json()["events"]

    assert [one["text"] for one in events] == [
        "The mix rose.",
        "Learning was paused.",
        "Version 0 answers. The source model.",
    ]


def test_an_event_of_an_unknown_kind_is_shown_with_its_details(live):
    live.storage.events.add("moved", "boss", where="here")

    assert live.client.get("/v1/events?limit=1").json()["events"][0]["text"] == "where: here"


def test_a_version_without_weights_cannot_be_downloaded(live):
    live.save_version(1).unlink()

    assert live.client.get("/v1/versions/1/weights").status_code == 409
    assert live.client.get("/v1/versions/7/weights").status_code == 404
