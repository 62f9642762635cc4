import json

import pytest


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_one_object_per_question_with_its_guesses(exported):
    written = lines(exported("jsonl"))

    assert [one["question"] for one in written] == [1, 2, 3]
    assert written[1]["guesses"] == [
        {"label": 1, "class": "größer; Hund", "probability": 0.6},
        {"label": 3, "class": "三毛猫", "probability": 0.4},
    ]
    assert (written[0]["sample"], written[0]["state"], written[0]["answer"]) == (
        "=s0",
        "open",
        None,
    )
    assert "image" not in written[0]


def test_names_stay_readable(exported):
    assert "größer; Hund" in exported("jsonl")


def test_whether_a_question_is_for_the_audit_is_not_told(exported):
    assert "purpose" not in exported("jsonl", everything=True)


def test_objects_that_are_filled_in_come_back(exported, imported, said):
    written = lines(exported("jsonl"))
    written[0]["answer"] = "三毛猫"
    written[2]["kind"] = "skip"

    report = imported("jsonl", "\n".join(json.dumps(one) for one in written))

    assert (report.taken, report.blank) == (2, 1)
    assert [said(1), said(2), said(3)] == [[("ada", "label", 3)], [], [("ada", "skip", None)]]


def test_what_was_written_with_answers_is_known_when_it_comes_back(exported, imported, said):
    imported(
        "jsonl", '{"question": 1, "answer": 2, "annotator": "bob"}\n{"question": 2, "kind": "skip"}'
    )
    before = [said(number) for number in (1, 2, 3)]

    report = imported("jsonl", exported("jsonl", everything=True), annotator="someone else")

    assert (report.taken, report.repeated, report.blank) == (0, 2, 1)
    assert [said(number) for number in (1, 2, 3)] == before


def test_closed_questions_are_written_on_request_with_what_counts(
    service, exported, imported, clock
):
    imported("jsonl", '{"question": 1, "answer": "cat"}')
    clock.sleep(100)
    service.questions.settle()

    assert [one["question"] for one in lines(exported("jsonl"))] == [2, 3]
    first = lines(exported("jsonl", everything=True))[0]
    assert (first["state"], first["answer"]) == ("answered", "cat")
    assert [one["annotator"] for one in first["answers"]] == ["ada"]


def test_what_was_forgotten_does_not_leave(service, exported):
    service.samples.forget("=s1", "ada")

    assert [one["question"] for one in lines(exported("jsonl", everything=True))] == [1, 3]


def test_what_was_skipped_and_forgotten_does_not_leave(service, exported, clock):
    service.questions.answer(2, "ada", "skip", None, "key")
    clock.sleep(10)
    service.questions.settle()
    service.samples.forget("=s1", "ada")

    assert [one["question"] for one in lines(exported("jsonl", everything=True))] == [1, 3]


def test_images_are_referred_to_on_request(exported):
    written = lines(exported("jsonl", image_url="https://labels.example/"))

    assert written[0]["image"] == "https://labels.example/v1/samples/%3Ds0/image"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1, 2]", "not an object with a question"),
        ('{"answer": "cat"}', "not an object with a question"),
        ('{"question": 1, "answers": [3]}', "an answer must be an object"),
        ('{"question": 1, "answer": "' + "x" * 1_000_001 + '"}', "more than 1,000,000 characters"),
    ],
    ids=lambda value: value[:20],
)
def test_a_line_that_makes_no_sense_is_refused_and_the_next_is_taken(imported, text, reason):
    report = imported("jsonl", f'\n{text}\n{{"question": 2, "answer": "cat"}}\n')

    assert (report.taken, report.refused) == (1, 1)
    assert report.problems[0].line == 2
    assert reason in report.problems[0].reason


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"])
def test_an_empty_file_changes_nothing(imported, text):
    report = imported("jsonl", text)

    assert (report.taken, report.refused, report.blank) == (0, 0, 0)
