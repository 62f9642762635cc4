"""The guide for people who label, their own answers, and what they remark."""

import pytest

from attakit.errors import SettingError
from attakit.service.web.examples import MOST_EXAMPLES, Examples
from attakit.settings.service import LabellingTable

CLASSES = ("cat", "dog", "owl")


@pytest.fixture
def examples(tmp_path, image_file):
    """A folder with examples: many cats, a dog that is no image, no owl."""
    folder = tmp_path / "examples"
    for name in (*(f"cat/{n}.png" for n in range(9)), "dog/1.png", "dog/notes.txt", "cow/1.png"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image_file("PNG") if "cat" in name else b"no image")
    return folder


def test_the_guide_has_instructions_and_examples_by_class(start, examples):
    table = {"instructions": "Look twice.\n", "about": {"owl": "At night."}, "examples": examples}
    live = start(labelling=table)

    guide = live.client.get("/v1/guide").json()

    assert guide["instructions"] == "Look twice."
    assert [one["about"] for one in guide["classes"]] == ["", "", "At night."]
    assert [len(one["examples"]) for one in guide["classes"]] == [MOST_EXAMPLES, 1, 0]
    picture = live.client.get(guide["classes"][0]["examples"][0])
    assert (picture.headers["content-type"], picture.content[:4]) == ("image/png", b"\x89PNG")


@pytest.mark.parametrize("place", ["1/0", "0/99", "7/0"])
def test_an_example_that_is_not_there_or_no_image_is_not_found(start, examples, place):
    live = start(labelling={"examples": examples})

    assert live.client.get(f"/v1/guide/{place}").status_code == 404


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"examples": "nowhere"}, "there is no folder nowhere"),
        ({"about": {"cow": "Moos."}}, "'cow' is not a class"),
    ],
)
def test_a_guide_that_cannot_be_is_refused_at_the_start(table, complaint):
    with pytest.raises(SettingError, match=complaint):
        Examples(LabellingTable(**table), CLASSES)


def test_a_folder_without_any_class_is_refused(tmp_path):
    with pytest.raises(SettingError, match="no images in subfolders with the names of the classes"):
        Examples(LabellingTable(examples=tmp_path), CLASSES)


def say(live, number, key, **said):
    path = f"/v1/questions/{number}/answer"
    assert live.client.post(path, json={"key": key, **said}).status_code == 200


def test_people_see_their_own_answers_and_which_are_final(live):
    first, second, third = live.ask(3)
    say(live, first, "k1", label=1)
    live.clock.now += 6
    live.storage.questions.settle()
    say(live, second, "k2", kind="none", comment="Blurred", flag=True)
    live.client.post(
        f"/v1/questions/{third}/answer",
        json={"key": "k3", "label": 0},
        headers={"X-Annotator": "b"},
    )

    answers = live.client.get("/v1/questions/mine").json()["answers"]

    found = [(one["key"], one["kind"], one["label"], one["final"]) for one in answers]
    assert found == [("k2", "none", None, False), ("k1", "label", 1, True)]
    assert (answers[0]["comment"], answers[0]["flagged"]) == ("Blurred", True)
    assert (answers[1]["comment"], answers[1]["flagged"]) == (None, False)


def test_an_answer_of_the_list_is_taken_back_by_its_key(live):
    first, second = live.ask(2)
    say(live, first, "k1", label=1)
    say(live, second, "k2", label=1)

    lease = live.client.post("/v1/questions/undo", json={"key": "u", "answer": "k1"}).json()

    assert lease["question"] == first
    answers = live.client.get("/v1/questions/mine").json()["answers"]
    assert [one["key"] for one in answers] == ["k2"]


def test_remarks_are_seen_by_others_and_exported(live):
    (number,) = live.ask()
    say(live, number, "k", label=1, comment="=Two dogs", flag=True)

    (question,) = live.client.get("/v1/questions").json()["questions"]
    assert (question["answers"][0]["comment"], question["answers"][0]["flagged"]) == (
        "=Two dogs",
        True,
    )
    for form, shown in (
        ("jsonl", '"comment": "=Two dogs", "flagged": true'),
        ("csv", "'=Two dogs,yes"),
    ):
        text = live.client.get(f"/v1/export/questions?format={form}&everything=true").text
        assert shown in text


@pytest.mark.parametrize("comment", ["x" * 1001, "a\x00b"])
def test_a_comment_that_cannot_be_kept_is_refused(live, comment):
    (number,) = live.ask()
    said = {"key": "k", "label": 1, "comment": comment}

    assert live.client.post(f"/v1/questions/{number}/answer", json=said).status_code == 422


def test_remarks_about_a_forgotten_sample_are_gone(live):
    (number,) = live.ask()
    say(live, number, "k", label=1, comment="My neighbour's dog", flag=True)
    live.client.delete(f"/v1/samples/{live.samples[0]}")

    assert live.client.get("/v1/questions/mine").json()["answers"] == []
    (left,) = live.storage.questions.answers(number)
    assert (left.comment, bool(left.flagged)) == (None, False)
