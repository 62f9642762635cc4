from __future__ import annotations

import json
import math

import pytest
import torch

from attakit.errors import SettingError, StateError
from attakit.queries import Answer, Query
from attakit.records import Choice, Rows, Selection
from attakit.report import Pictures
from attakit.report.pictures import is_kept, shortened
from attakit.report.scenes import COLOUR_COUNT, clustering, gallery, read_pictures

CLASSES = ["zero", "one", "two"]


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pictures.jsonl"


def test_asked_samples_are_kept_with_picture_and_prediction(path, make_step_result):
    pictures = Pictures(path, classes=CLASSES, segments={"0-1": "night"}, labels={"0-1": 2})

    pictures.on_step(make_step_result(0, [0, 1], asked=["0-1"]))

    head, asked = lines_of(path)
    assert (head["kind"], head["classes"]) == ("pictures", CLASSES)
    assert (asked["kind"], asked["sample"], asked["predicted"]) == ("asked", "0-1", 1)
    assert (asked["segment"], asked["truth"]) == ("night", 2)
    assert asked["confidence"] == round(math.exp(4) / (math.exp(4) + 2), 3)
    assert asked["png"].startswith("iVBOR")


def test_inputs_that_are_no_images_have_no_picture(path, make_step_result):
    pictures = Pictures(path, classes=CLASSES)

    pictures.on_step(make_step_result(0, [0], asked=["0-0"], inputs=torch.zeros(1, 16)))

    assert lines_of(path)[1]["png"] is None


def test_normalisation_for_other_channels_is_left_aside(path, make_step_result):
    pictures = Pictures(path, classes=CLASSES, mean=(0.5,) * 3, std=(0.2,) * 3)

    pictures.on_step(make_step_result(0, [0], asked=["0-0"]))

    assert lines_of(path)[1]["png"]


def test_late_and_skipped_answers_find_their_question(path, make_step_result):
    pictures = Pictures(path, classes=CLASSES)
    pictures.on_step(make_step_result(0, [0, 1, 2, 2], asked=["0-0", "0-1", "0-2", "0-3"]))
    answers = [
        Answer(Query("0-2", 0), 0, "me"),
        Answer(Query("0-0", 0), 0, "me"),
        Answer(Query("0-1", 0), None, "me"),
    ]
    pictures.on_step(make_step_result(1, [0], answers=answers))

    cards = gallery(read_pictures(path.parent), 10**6)

    assert [card.verdict for card in cards] == ["right", "skipped", "wrong", "waiting"]
    assert [card.answer for card in cards] == ["zero", None, "zero", None]
    assert [card.predicted for card in cards] == ["zero", "one", "two", "two"]


def test_answers_that_are_no_labels_are_shown_as_what_they_say(path, make_step_result):
    pictures = Pictures(path, classes=CLASSES)
    names = ["0-0", "0-1", "0-2", "0-3"]
    pictures.on_step(make_step_result(0, [0, 1, 2, 2], asked=names))
    queries = [Query(name, 0) for name in names]
    answers = [
        Answer(queries[0], None, "me", excluded=(0,)),
        Answer(queries[1], None, "me", among=(0, 1)),
        Answer(queries[2], None, "me", chances=(0.8, 0.0, 0.2)),
        Answer(queries[3], None, "me", excluded=(0, 1)),
    ]
    pictures.on_step(make_step_result(1, [0], answers=answers))

    cards = gallery(read_pictures(path.parent), 10**6)

    assert [card.answer for card in cards] == ["not zero", "zero or one", "zero", "not zero or one"]
    assert [card.verdict for card in cards] == ["wrong", "right", "wrong", "right"]


def test_clusterings_are_kept_with_roles_weights_and_places(path, make_run_step_result):
    pictures = Pictures(path, classes=CLASSES)

    pictures.on_step(make_run_step_result(3, 4, ["0-0", "1-5"]))

    frame = lines_of(path)[-1]
    points = {point["sample"]: point for point in frame["points"]}
    assert (frame["kind"], frame["step"], frame["total"]) == ("clusters", 3, 8)
    assert {name: points[name]["role"] for name in ("0-0", "3-5", "3-0")} == {
        "0-0": "known",
        "3-5": "chosen",
        "3-0": "new",
    }
    assert (points["1-5"]["weight"], points["1-5"]["cluster"]) == (2.0, 1)
    assert all(round(point["x"], 3) == point["x"] for point in points.values())


def test_a_large_clustering_keeps_what_matters(path, make_step_result):
    many = tuple(f"0-{n}" for n in range(50))
    rows = Rows(many, torch.randn(50, 4), torch.zeros(50, 3), torch.ones(50))
    known = Rows(("k",), torch.randn(1, 4), torch.zeros(1, 3), torch.ones(1))
    choice = Choice(rows, known, Selection(("0-49",), {}, dict.fromkeys(many, 0)))
    pictures = Pictures(path, classes=CLASSES, max_points=10)

    pictures.on_step(make_step_result(0, [0], choice=choice))

    frame = lines_of(path)[-1]
    assert (frame["total"], len(frame["points"])) == (51, 10)
    assert [point["sample"] for point in frame["points"][:2]] == ["0-49", "k"]


def test_a_choice_among_nothing_leaves_no_picture(path, make_step_result):
    nothing = Rows((), torch.zeros(0, 4), torch.zeros(0, 3), torch.zeros(0))
    pictures = Pictures(path, classes=CLASSES)

    pictures.on_step(make_step_result(0, [0], choice=Choice(nothing, nothing, Selection())))

    assert len(lines_of(path)) == 1


def test_long_streams_are_covered_to_their_end_by_few_lines():
    kept = [number for number in range(100_000) if is_kept(number, 40)]

    assert kept[:40] == list(range(40))
    assert len(kept) < 300
    assert kept[-1] > 90_000


def test_questions_beyond_the_limit_are_thinned(path, make_step_result):
    pictures = Pictures(path, classes=CLASSES, max_asked=2)
    for step in range(8):
        turn = make_step_result(step, [0], asked=[f"{step}-0"], asked_so_far=step + 1)
        pictures.on_step(turn)

    assert [line["step"] for line in lines_of(path)[1:]] == [0, 1, 2, 4]


def test_a_resumed_file_equals_an_unbroken_one(tmp_path, make_run_step_result):
    def feed(pictures, steps):
        for step in steps:
            torch.manual_seed(step)
            known = [f"{n}-{5 if n % 2 else 0}" for n in range(step)]
            pictures.on_step(make_run_step_result(step, 4, known))
        pictures.close()

    with torch.random.fork_rng():
        feed(Pictures(tmp_path / "whole", classes=CLASSES), range(7))
        feed(Pictures(tmp_path / "broken", classes=CLASSES), range(5))
        feed(Pictures(tmp_path / "broken", classes=CLASSES, resume_after=2), range(3, 7))

    assert lines_of(tmp_path / "broken") == lines_of(tmp_path / "whole")


def test_a_file_of_another_kind_is_not_continued(path):
    path.write_text('{"kind": "run", "format": 1}\n', encoding="utf-8")

    with pytest.raises(StateError, match="must begin with a line of kind 'pictures'"):
        Pictures(path, classes=CLASSES, resume_after=0)


@pytest.mark.parametrize("name", ["max_asked", "max_cluster_steps", "max_points"])
def test_limits_below_one_are_refused(path, name):
    with pytest.raises(SettingError, match=f"{name} must be at least 1, got 0"):
        Pictures(path, classes=CLASSES, **{name: 0})


def test_mean_without_std_is_refused(path):
    with pytest.raises(SettingError, match="mean and std belong together"):
        Pictures(path, classes=CLASSES, mean=(0.5,))


def test_a_run_without_pictures_has_an_empty_record(tmp_path):
    record = read_pictures(tmp_path)

    assert record.asked == record.frames == []
    assert clustering(record) is None


def test_a_cluster_keeps_its_colour_while_its_number_changes(path, make_step_result):
    known = tuple(f"k{n}" for n in range(6))
    rows = Rows(known, torch.randn(6, 4), torch.zeros(6, 3), torch.ones(6))
    nothing = Rows((), torch.zeros(0, 4), torch.zeros(0, 3), torch.zeros(0))
    pictures = Pictures(path, classes=CLASSES)
    for step, numbers in enumerate([(0, 0, 1, 1, 2, 2), (2, 2, 0, 0, 1, 3)]):
        clusters = dict(zip(known, numbers, strict=True))
        choice = Choice(nothing, rows, Selection((), {}, clusters))
        pictures.on_step(make_step_result(step, [0], choice=choice))

    scene = clustering(read_pictures(path.parent))

    first, second = ([point[6] for point in frame["points"]] for frame in scene["frames"])
    assert first == [0, 0, 1, 1, 2, 2]
    assert second[:4] == first[:4]
    assert sorted(second[4:]) == [2, 3]
    assert COLOUR_COUNT > 3


@pytest.mark.parametrize(("side", "coarse"), [(28, True), (48, False)])
def test_only_pictures_of_few_pixels_are_coarse(path, make_step_result, side, coarse):
    pictures = Pictures(path, classes=CLASSES)
    pictures.on_step(make_step_result(0, [0], asked=["0-0"], inputs=torch.rand(1, 3, side, side)))

    (card,) = gallery(read_pictures(path.parent), 10**6)

    assert card.is_coarse is coarse


def test_clusterings_are_thinned_for_the_page(path, make_run_step_result):
    pictures = Pictures(path, classes=CLASSES, max_cluster_steps=100)
    for step in range(60):
        pictures.on_step(make_run_step_result(step, 4, ["0-0", "1-5"]))

    steps = [frame["step"] for frame in clustering(read_pictures(path.parent))["frames"]]

    assert len(steps) == 40
    assert (steps[0], steps[-1]) == (0, 59)


def test_a_gallery_that_is_too_large_is_thinned_evenly(path, make_step_result):
    pictures = Pictures(path, classes=CLASSES)
    pictures.on_step(make_step_result(0, [0] * 9, asked=[f"0-{n}" for n in range(9)]))
    record = read_pictures(path.parent)
    size = sum(len(asked["png"]) for asked in record.asked)

    cards = gallery(record, size // 3)

    assert [card.sample for card in cards] in (["0-0", "0-4", "0-8"], ["0-0", "0-8"])


@pytest.mark.parametrize("content", ["a text", {"age": "3", "colour": ""}])
def test_rows_and_texts_are_kept_and_shown_in_place_of_pictures(path, make_step_result, content):
    pictures = Pictures(path, classes=CLASSES, show=lambda sample: content)

    pictures.on_step(make_step_result(0, [0], asked=["0-0"], inputs=torch.zeros(1, 16)))

    (card,) = gallery(read_pictures(path.parent), limit_bytes=10_000)
    assert (card.text or card.row) == content
    assert card.png is None


def test_long_texts_and_wide_rows_are_cut():
    assert len(shortened("a" * 1000)) == 401
    wide = shortened({f"column {number}": "1" for number in range(40)})
    assert len(wide) == 31
    assert wide["…"] == "10 more columns"
