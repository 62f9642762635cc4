import base64
import io
import json
from xml.etree.ElementTree import fromstring

import pytest
from PIL import Image

from attakit.errors import LabelError, SettingError
from attakit.service.exchange import label_config

CLASSES = ("cat", "größer; Hund", "=SUM(1)", "三毛猫")


def annotation(*names, **more):
    value = {"choices": list(names)}
    chosen = {"from_name": "class", "to_name": "image", "type": "choices", "value": value}
    return {"id": 5, "result": [chosen], **more}


def project(*annotations, question=1):
    """What Label Studio exports: the task as it was imported, with annotations."""
    task = {"id": 77, "data": {"question": question, "sample": "=s0"}, "annotations": annotations}
    return json.dumps([task])


def test_a_task_holds_its_image_and_the_guess_of_the_model(exported):
    first, second, _ = json.loads(exported("label-studio"))

    start, _, content = first["data"]["image"].partition(",")
    with Image.open(io.BytesIO(base64.b64decode(content))) as image:
        assert (image.format, image.size, image.getpixel((0, 0))) == ("PNG", (4, 4), (255, 0, 0))
    assert start == "data:image/png;base64"
    assert first["data"]["question"] == 1
    (guess,) = second["predictions"]
    assert guess["result"] == annotation("größer; Hund")["result"]
    assert (guess["score"], guess["model_version"]) == (0.6, "version 7")


def test_a_task_whose_image_is_gone_still_has_all_that_its_interface_shows(exported):
    _, second, _ = json.loads(exported("label-studio"))
    shown = fromstring(label_config(["cat"])).find("Image").get("value")

    assert second["data"][shown.removeprefix("$")] == ""


def test_guesses_name_tags_and_choices_of_the_interface(exported):
    interface = fromstring(label_config(CLASSES))
    choices = interface.find("Choices")
    names = [one.get("value") for one in choices]

    for task in json.loads(exported("label-studio")):
        (result,) = task["predictions"][0]["result"]
        assert result["type"] == "choices"
        assert result["from_name"] == choices.get("name")
        assert result["to_name"] == choices.get("toName") == interface.find("Image").get("name")
        assert set(result["value"]["choices"]) <= set(names)
        assert 0 <= task["predictions"][0]["score"] <= 1


def test_an_export_as_label_studio_writes_it_is_understood(imported, said):
    exported_there = {
        "id": 1,
        "data": {"question": 1, "sample": "=s0", "image": "data:image/png;base64,"},
        "annotations": [
            {
                "id": 1001,
                "completed_by": 10,
                "result": [
                    {
                        "id": "Dx_aB91ISN",
                        "from_name": "class",
                        "to_name": "image",
                        "type": "choices",
                        "origin": "prediction-changed",
                        "value": {"choices": ["cat"]},
                    }
                ],
                "was_cancelled": False,
                "ground_truth": False,
                "created_at": "2026-03-09T22:16:08.728353Z",
                "lead_time": 4.288,
                "prediction": {},
                "result_count": 1,
                "task": 1,
            }
        ],
        "predictions": [12],  # numbers alone, unless one asks for more
        "drafts": [],
        "meta": {},
        "project": 83,
        "total_annotations": 1,
        "cancelled_annotations": 0,
    }

    report = imported("label-studio", json.dumps([exported_there]))

    assert (report.taken, report.problems) == (1, ())
    assert said(1) == [("label-studio/10", "label", 0)]


def test_the_short_format_of_label_studio_is_told_apart(imported):
    short = [{"id": 1, "question": 1, "image": "x", "class": "cat", "annotator": 10}]

    (problem,) = imported("label-studio", json.dumps(short)).problems

    assert "not in the format JSON" in problem.reason


def test_a_task_can_refer_to_the_image_at_the_service(exported):
    tasks = json.loads(exported("label-studio", image_url="http://127.0.0.1:8000"))

    assert tasks[1]["data"]["image"] == "http://127.0.0.1:8000/v1/samples/%3Ds1/image"


def test_an_address_that_is_none_is_refused_before_anything_is_written(exported):
    with pytest.raises(SettingError, match="--image-url"):
        exported("label-studio", image_url="javascript:alert(1)")


def test_the_interface_offers_every_class_and_none_of_them():
    config = fromstring(label_config(["<cat>", 'the "dog"']))

    assert [one.get("value") for one in config.iter("Choice")] == [
        "<cat>",
        'the "dog"',
        "none of these",
    ]
    assert config.find("Choices").get("toName") == config.find("Image").get("name")


def test_annotations_come_back(exported, imported, said):
    tasks = json.loads(exported("label-studio"))
    tasks[0]["annotations"] = [annotation("三毛猫", completed_by={"id": 1, "email": "eve@x.org"})]
    tasks[1]["annotations"] = [annotation("none of these", completed_by=4)]
    tasks[2]["annotations"] = [{"result": [], "was_cancelled": True}]

    report = imported("label-studio", json.dumps(tasks))

    assert (report.taken, report.problems) == (3, ())
    assert [said(1), said(2), said(3)] == [
        [("label-studio/eve@x.org", "label", 3)],
        [("label-studio/4", "none", None)],
        [("ada", "skip", None)],
    ]


def test_what_was_written_with_answers_is_known_when_it_comes_back(exported, imported, said):
    imported("jsonl", '{"question": 1, "answer": "cat"}\n{"question": 2, "kind": "none"}')
    before = [said(number) for number in (1, 2, 3)]

    report = imported("label-studio", exported("label-studio", everything=True))

    assert (report.repeated, report.blank, report.taken) == (2, 1, 0)
    assert [said(number) for number in (1, 2, 3)] == before


def test_several_people_count_each_for_themselves(imported, said):
    two = project(annotation("cat", completed_by=1), annotation("三毛猫", completed_by=2))

    report = imported("label-studio", two)

    assert (report.taken, report.conflicting) == (1, 1)
    assert [who for who, _, _ in said(1)] == ["label-studio/1", "label-studio/2"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[3]", "task data has no question"),
        ('[{"data": {"image": "x"}}]', "task data has no question"),
        ('[{"data": {"question": 1}, "annotations": 3}]', "not a list"),
        ('[{"data": {"question": 1}, "annotations": [3]}]', "must be an object"),
        (project(annotation("cat", "三毛猫")), "one choice"),
        (project({"result": 3}), "one choice"),
        (project({"result": [{"type": "choices", "value": 3}]}), "one choice"),
        (project(annotation("cow")), "'cow' is not a class. Classes: cat, "),
        (project(annotation({})), "not a class"),
    ],
    ids=range(9),
)
def test_a_task_that_makes_no_sense_is_refused_with_its_number(imported, text, reason):
    report = imported("label-studio", text)

    assert (report.taken, report.refused) == (0, 1)
    assert report.problems[0].line == 1
    assert reason in report.problems[0].reason


def test_a_task_that_nobody_annotated_is_blank(imported):
    assert imported("label-studio", project()).blank == 1
    assert imported("label-studio", project({"result": []})).blank == 1


@pytest.mark.parametrize("text", ["{", '{"data": 1}', "[" * 100_000])
def test_a_file_that_is_no_list_of_tasks_is_refused_as_a_whole(imported, text):
    with pytest.raises(LabelError, match="format JSON"):
        imported("label-studio", text)


@pytest.mark.parametrize("text", ["", "[]", "\ufeff[]"])
def test_an_empty_project_changes_nothing(imported, text):
    report = imported("label-studio", text)

    assert (report.taken, report.refused, report.blank) == (0, 0, 0)
