import io
import json
import unicodedata

import pytest

from attakit.errors import LabelError, SettingError
from attakit.service.exchange import choose_file_format, read_answers, write_questions
from attakit.service.storage import Question, ServedSample


def line(question=1, **said):
    return json.dumps({"question": question, **said})


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_same_file_twice_changes_nothing(exported, imported, service, said, form):
    text = "question,answer\n1,cat\n2,9\n3,cat\n" if form == "csv" else line(answer="cat")
    first = imported(form, text)
    before = (exported("jsonl", everything=True), said(1), service.questions.counts())

    second = imported(form, text)

    assert first.taken == second.repeated > 0
    assert second.taken == 0
    assert (exported("jsonl", everything=True), said(1), service.questions.counts()) == before


def test_a_late_answer_is_told_each_time(service, imported, clock):
    imported("jsonl", line(answer="cat"))
    clock.sleep(100)
    service.questions.settle()

    assert imported("jsonl", line(answer=3), annotator="bob").late == 1
    assert imported("jsonl", line(answer=3), annotator="bob").late == 1
    assert service.questions.get([1])[0].label == 0


def test_another_answer_of_the_same_person_is_a_conflict(imported, service):
    imported("jsonl", line(answer="cat"))

    assert imported("jsonl", line(answer=3)).conflicting == 1


@pytest.mark.parametrize("question", [99, 2**63, 10**40, "99", "9" * 5_000])
def test_a_question_that_was_never_asked_is_unknown(imported, question):
    report = imported("jsonl", line(question, answer="cat"))

    assert (report.unknown, report.refused) == (1, 0)
    assert "was never asked" in report.problems[0].reason
    assert len(report.problems[0].reason) < 100


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"answer": "cow"}, "'cow' is not a class"),
        ({"answer": 4}, "4 is not a class"),
        ({"answer": "4"}, "'4' is not a class"),
        ({"answer": -1}, "-1 is not a class"),
        ({"answer": True}, "True is not a class"),
        ({"answer": 1.0}, "1.0 is not a class"),
        ({"answer": ["cat"]}, "is not a class"),
        ({"answer": "9" * 5_000}, "is not a class"),
        (
            {"answer": "cat", "kind": "maybe"},
            "kind must be one of label, skip, none, yes, no, got 'maybe'",
        ),
        ({"answer": "cat", "kind": "\ud800"}, "kind must be one of label, skip"),
        ({"answer": "cat", "kind": ["label"]}, "kind must be"),
        ({"answer": "cat", "kind": "skip"}, "of kind 'skip' has no label, got 'cat'"),
        ({"kind": "label"}, "None is not a class"),
        ({"answer": "cat", "annotator": 3}, "annotator must be a name"),
        ({"answer": "cat", "annotator": "a\x00b"}, "annotator must be a name"),
        ({"answer": "cat", "annotator": "\ud800"}, "annotator must be a name"),
        ({"answer": "cat", "annotator": "x" * 1_000}, "annotator must be a name"),
        ({"answer": "cat", "question": "one"}, "question must be a number, got 'one'"),
        ({"answer": "cat", "question": "²"}, "question must be a number"),
        ({"answer": "cat", "question": True}, "question must be a number"),
        ({"answer": "cat", "question": -1}, "question must be a number"),
        ({"answer": "cat", "question": None}, "question must be a number"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_with_the_reason(imported, service, said, reason):
    report = imported("jsonl", line(**said))

    assert (report.taken, report.refused) == (0, 1)
    assert reason in report.problems[0].reason
    assert len(report.problems[0].reason) < 250
    assert service.questions.answers(1) == ()


def test_a_class_is_known_by_name_however_its_accents_are_written(imported, said):
    assert imported("jsonl", line(answer=unicodedata.normalize("NFD", " größer; Hund "))).taken == 1
    assert said(1) == [("ada", "label", 1)]


@pytest.mark.parametrize("answer", ["2", 2])
def test_a_name_goes_before_a_number(service, said, answer):
    text = io.StringIO(line(answer=answer))

    read_answers(service, text, "jsonl", "ada", classes=("2", "1", "0"))

    assert said(1) == [("ada", "label", 0)]


def test_text_in_another_encoding_is_explained(service):
    latin = io.TextIOWrapper(io.BytesIO("question,answer\n1,größer\n".encode("latin-1")), "utf-8")

    with pytest.raises(LabelError, match="not UTF-8 text"):
        read_answers(service, latin, "csv", "ada", classes=("cat",))


def test_an_unknown_format_is_refused(service):
    with pytest.raises(SettingError, match="csv, jsonl, label-studio"):
        write_questions(service, io.StringIO(), "xml", classes=("cat",))
    with pytest.raises(SettingError, match="csv, jsonl, label-studio"):
        read_answers(service, io.StringIO(), "xml", "ada", classes=("cat",))


def test_the_ending_of_a_file_says_its_format(tmp_path):
    assert choose_file_format(tmp_path / "a.CSV") == "csv"
    assert choose_file_format(tmp_path / "a.json") == "label-studio"
    assert choose_file_format(tmp_path / "a.json", "jsonl") == "jsonl"
    with pytest.raises(SettingError, match=r"'a\.xlsx'.*\.csv"):
        choose_file_format(tmp_path / "a.xlsx")


def test_both_databases_exchange_the_same(storage):
    """The fixture `storage` comes once with SQLite and once with PostgreSQL."""
    storage.samples.add([ServedSample("s", None, 0, 0, 0.5, 0.5, 1.0)])
    storage.questions.put([Question(0, "s", 0, "audit", 0, 0.5, ((0, 0.5),), 1.0)])
    answer = '{"question": 1, "answer": "猫"}'

    reports = [
        read_answers(storage, io.StringIO(answer), "jsonl", "ada", classes=("犬", "猫"))
        for _ in range(2)
    ]
    text = io.StringIO()
    write_questions(storage, text, "jsonl", classes=("犬", "猫"), everything=True)

    assert [(report.taken, report.repeated) for report in reports] == [(1, 0), (0, 1)]
    assert json.loads(text.getvalue())["answers"][0]["answer"] == "猫"
