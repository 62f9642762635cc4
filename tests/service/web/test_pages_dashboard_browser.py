"""The dashboard as people read it: headline, two lines, classes, people, events and versions."""

import time

import pytest

from attakit.service.storage import Turn
from attakit.service.storage.rows import Gate, Question, ServedSample, Version
from attakit.service.storage.traffic import TrafficPeriod
from live_site import PHONE, picture

pytestmark = pytest.mark.browser

SCREENS = 3  # that a phone may scroll through
ACCURACY = {"accuracy": 0.795, "accuracy_low": 0.7, "accuracy_high": 0.9, "accuracy_count": 40.0}
SOURCE = {"source_accuracy": 0.545, "source_accuracy_low": 0.4, "source_accuracy_high": 0.7}


@pytest.fixture
def busy(start_site):
    """A service that has learned, been audited and promoted."""
    site = start_site(settle_seconds=0.0)
    storage, now = site.storage, time.time()
    names = [f"s{number}" for number in range(24)]
    storage.samples.add(
        [
            ServedSample(name, picture(name), 0, at % 10, 0.5, 1.0, now)
            for at, name in enumerate(names)
        ]
    )
    guesses = ((3, 0.6), (1, 0.4))
    put = [
        Question(0, name, 0, "audit", 0, 1.0, guesses, now, source_guess=3, source_entropy=0.5)
        for name in names
    ]
    for at, number in enumerate(storage.questions.put(put)):
        storage.questions.answer(number, "ada", "label", at % 5, f"k{number}", flagged=at == 23)
    storage.questions.settle()
    for number in range(4):
        storage.turns.plan(Turn(number, (), 0, at=now - 7200 + 2000 * number))
        storage.turns.finish(number, {"entropy": 0.5, **ACCURACY, **SOURCE})
    for number in (1, 2):
        file = f"{number}.safetensors"
        storage.versions.add(Version(number, number, file, "x", 9, now))
        (site.versions / file).write_bytes(b"weights")
        storage.versions.gate(
            number, Gate(True, "Passed.", {"candidate_accuracy": 0.6 + 0.1 * number})
        )
    storage.versions.promote(2, "Passed.", "learner")
    storage.events.add("change", "learner", what="entropy", text="The uncertainty fell.")
    return site


def test_served_and_source_accuracy_stand_side_by_side(busy, visit):
    page = visit("/", at=busy)

    page.locator("#source-accuracy", has_text="55").wait_for()
    assert page.locator("#accuracy").inner_text() == "80\u00a0%"
    assert page.locator("#gain").inner_text() == "+25"
    assert page.locator("#charts .chart").first.locator("path.line").count() == 2
    assert page.locator("#alarms li").count() == 0  # what fell is no alarm
    page.locator("#charts .alarm.change").first.wait_for(state="attached")


def test_a_time_range_is_chosen(busy, visit):
    page = visit("/", at=busy)
    page.locator("#charts path.line").first.wait_for(state="attached")

    with page.expect_response(lambda one: "seconds=3600" in one.url) as sent:
        page.locator("#range").select_option("3600")

    assert [turn["turn"] for turn in sent.value.json()["turns"]] == [2, 3]


def test_classes_people_and_events_are_shown(busy, visit):
    page = visit("/", at=busy)

    page.locator(".by-class tbody tr").first.wait_for()
    assert page.locator(".by-class tbody tr").count() == 5
    assert page.locator(".matrix tbody tr").count() == 10
    page.locator(".people tr", has_text="ada").wait_for()
    page.locator(".events li", has_text="Version 2 answers").wait_for()
    page.locator(".recent .remark", has_text="flagged").first.wait_for()


def test_latency_and_errors_are_drawn_over_the_same_time_as_the_turns(busy, visit):
    now, server = time.time(), "another"
    periods = [
        TrafficPeriod(now - 90 * place, server, 100, 1, 2, ((-60, 87), (-40, 10)))
        for place in (3, 2, 1)
    ]
    busy.storage.traffic.add(periods, oldest=0.0)
    page = visit("/", at=busy)

    latency = page.locator("#charts .chart", has_text="Latency")
    latency.locator("path.line").first.wait_for(state="attached")
    assert latency.locator("path.line").count() == 2
    assert latency.locator(".curves").inner_text().split() == [
        *("median", "50", "ms", "95", "%", "within", "140", "ms")
    ]
    errors = page.locator("#charts .chart", has_text="Error rate")
    assert errors.locator(".curves").inner_text().split() == [
        *("errors", "1.0", "%", "refused", "2.0", "%")
    ]
    with page.expect_response(lambda one: "/v1/traffic?points=120&seconds=604800" in one.url):
        page.locator("#range").select_option("604800")


def test_every_colour_of_a_chart_is_in_its_legend(busy, visit):
    page = visit("/", at=busy)
    page.locator("#charts path.line").first.wait_for(state="attached")

    for chart in page.locator("#charts .chart:has(path.line)").all():
        drawn = {line.get_attribute("class").split()[1] for line in chart.locator(".line").all()}
        named = {one.get_attribute("class").split()[1] for one in chart.locator(".swatch").all()}
        assert drawn
        assert drawn <= named
    marks = page.locator("#legend .mark").evaluate_all("all => all.map((one) => one.className)")
    assert marks == ["mark alarm", "mark change"]


def test_only_versions_with_weights_are_offered_for_a_comparison(busy, visit):
    (busy.versions / "1.safetensors").unlink()
    page = visit("/", at=busy)

    page.locator("#compare-now").wait_for()
    values = "all => all.map((one) => one.value)"
    assert page.locator("#compare-one option").evaluate_all(values) == ["2", "0"]
    assert page.locator("#compare-one").input_value() == "2"
    assert page.locator("#compare-other").input_value() == "0"


def test_a_phone_scrolls_through_three_screens_at_most(busy, visit):
    page = visit("/", at=busy, viewport=PHONE, has_touch=True, is_mobile=True)
    page.locator("#events-note", has_text="now").wait_for()

    assert page.evaluate("document.documentElement.scrollHeight") <= SCREENS * PHONE["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.locator("summary", has_text="People").tap()
    page.locator(".people").wait_for()
