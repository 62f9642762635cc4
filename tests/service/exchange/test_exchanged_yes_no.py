"""Yes/no questions in files: each format says what is proposed, and takes yes and no back."""

import csv
import io
import json
from xml.etree.ElementTree import fromstring

import pytest

from attakit.service.exchange import label_config
from attakit.service.storage import Question

CLASSES = ("cat", "größer; Hund", "=SUM(1)", "三毛猫")


@pytest.fixture
def proposing(service, clock):
    """Two more questions: whether it is a cat, and whether it is a 三毛猫."""
    service.questions.put(
        [
            Question(0, f"=s{number}", 1, "learn", 7, 0.9, ((3, 0.6),), clock.now, proposed=kind)
            for number, kind in ((0, 0), (2, 3))
        ]
    )
    return service


def test_json_lines_say_what_is_proposed_and_take_yes_and_no(proposing, exported, imported, said):
    written = [json.loads(line) for line in exported("jsonl").splitlines()]
    assert [one.get("proposed") for one in written] == [None, None, None, "cat", "三毛猫"]
    written[3]["answer"] = "yes"
    written[4]["kind"] = "no"

    report = imported("jsonl", "\n".join(json.dumps(one) for one in written))

    assert (report.taken, report.blank) == (2, 3)
    assert (said(4), said(5)) == ([("ada", "label", 0)], [("ada", "no", None)])


def test_a_table_says_what_is_proposed_and_takes_yes_and_no(proposing, exported, imported, said):
    rows = list(csv.DictReader(io.StringIO(exported("csv"), newline="")))
    assert [row["proposed"] for row in rows] == ["", "", "", "cat", "三毛猫"]

    report = imported("csv", "question,answer\n4,no\n5,yes\n1,yes\n")

    assert (report.taken, report.refused) == (2, 1)
    assert "proposes none" in report.problems[0].reason
    assert (said(4), said(5)) == ([("ada", "no", None)], [("ada", "label", 3)])


def test_label_studio_shows_what_is_asked_and_offers_yes_and_no(
    proposing, exported, imported, said
):
    interface = fromstring(label_config(CLASSES, yes_no=True))
    tasks = json.loads(exported("label-studio"))
    shown = interface.find("Header").get("value").removeprefix("$")
    assert [task["data"][shown] for task in tasks[2:4]] == ["Which class is it?", "Is it “cat”?"]
    assert [one.get("value") for one in interface.find("Choices")][:3] == ["yes", "no", "cat"]

    for task, choice in zip(tasks[3:], ("no", "yes"), strict=True):
        value = {"choices": [choice]}
        task["annotations"] = [{"result": [{"type": "choices", "value": value}]}]
    assert imported("label-studio", json.dumps(tasks)).taken == 2

    assert (said(4), said(5)) == ([("ada", "no", None)], [("ada", "label", 3)])


@pytest.mark.parametrize("form", ["csv", "jsonl", "label-studio"])
def test_what_was_said_comes_back_from_a_file_of_everything(
    proposing, exported, imported, said, form
):
    imported("csv", "question,answer\n4,no\n5,yes\n1,none of these\n")

    assert imported(form, exported(form, everything=True)).repeated >= 3 - (form == "label-studio")


@pytest.mark.parametrize("form", ["csv", "jsonl", "label-studio"])
def test_open_questions_that_are_answered_already_are_left_out(exported, imported, form):
    imported("jsonl", '{"question": 2, "answer": "cat"}')

    kept = exported(form)

    assert ("=s0" in kept, "=s1" in kept, "=s2" in kept) == (True, False, True)
    assert "=s1" in exported(form, everything=True)
