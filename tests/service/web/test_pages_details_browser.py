"""What pages do in less usual settings: several answers a question, many classes, alarms."""

import re
import time

import pytest

from attakit.service.storage import Turn
from attakit.service.storage.rows import Gate, Version
from live_site import PHONE, wait_until_shown

pytestmark = pytest.mark.browser

MANY = (*(f"tiger {number}" for number in range(38)), "tiger shark", "shark", "Éland")
ENTROPY = [0.4, 0.5, 0.4, 0.9, 1.0]


def label(page, question, key):
    wait_until_shown(page, question)
    page.keyboard.press(key)


def test_a_majority_is_asked_one_after_the_other_and_decides(start_site, visit):
    site = start_site(policy="majority", answers=3, settle_seconds=0.0)
    (question,) = site.ask(1)
    pages = [visit("/label", name, at=site) for name in ("ada", "bob", "eve")]

    label(pages[0], question, "1")
    pages[0].get_by_role("heading", name="Nothing for you right now").wait_for()
    label(pages[1], question, "2")
    site.wait_for(question, ("label", 0), ("label", 1))
    site.storage.questions.settle()
    assert site.storage.questions.get([question])[0].state == "open"
    label(pages[2], question, "2")

    site.wait_for(question, ("label", 0), ("label", 1), ("label", 1))
    site.storage.questions.settle()
    (settled,) = site.storage.questions.get([question])
    assert (settled.state, settled.label) == ("answered", 1)


def test_one_vote_of_a_majority_is_undone_and_given_anew(start_site, visit):
    site = start_site(policy="majority", answers=2)
    (question,) = site.ask(1)
    site.storage.questions.answer(question, "bob", "label", 4, "of bob")
    page = visit("/label", at=site)

    label(page, question, "1")
    site.wait_for(question, ("label", 4), ("label", 0))
    page.keyboard.press("u")
    label(page, question, "5")

    site.wait_for(question, ("label", 4), ("label", 4))


def test_the_dashboard_tells_who_voted_before_it_is_final(start_site, visit):
    site = start_site(policy="majority", answers=2)
    (question,) = site.ask(1)
    site.storage.questions.answer(question, "bob", "label", 4, "of bob")

    page = visit("/", at=site)

    page.locator("#recent", has_text="elk, not final yet").wait_for()
    page.locator("#recent", has_text="bob").wait_for()


def test_the_dashboard_shows_only_answers_that_count(start_site, visit):
    site = start_site(policy="first")
    (question,) = site.ask(1)
    site.storage.questions.answer(question, "bob", "label", 4, "of bob")
    site.storage.questions.answer(question, "cyd", "label", 0, "of cyd")

    page = visit("/", at=site)

    page.locator("#recent", has_text="elk, not final yet").wait_for()
    assert "cyd" not in page.locator("#recent").text_content()


def test_the_dashboard_tells_in_how_many_cases_people_agree(start_site, visit):
    site = start_site()
    site.ask(1)
    site.storage.versions.add(Version(1, 3, "1.safetensors", "b", 9, time.time()))
    site.storage.versions.gate(1, Gate(False, "Held back.", {"trust": 0.67}, time.time()))

    page = visit("/", at=site)

    page.locator(
        "#questions-note", has_text=re.compile(r"people agree in 67\s%\sof cases\.")
    ).wait_for()


def test_a_class_among_many_is_found_by_typing(start_site, visit):
    site = start_site(classes=MANY)
    first, second, third = site.ask(3)
    page = visit("/label", at=site)
    shown = page.locator("#classes li:visible")
    wait_until_shown(page, first)

    page.keyboard.press("/")
    page.keyboard.type("SHARK")
    assert shown.all_text_contents() == ["tiger shark", "shark"]
    assert page.locator("#classes .best").text_content() == "shark"
    page.keyboard.press("Enter")
    site.wait_for(first, ("label", MANY.index("shark")))

    wait_until_shown(page, second)
    assert shown.count() == len(MANY)
    page.keyboard.press("/")
    page.keyboard.type("nothing like it")
    assert shown.count() == 0
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert site.said(second) == []
    page.keyboard.press("Space")
    site.wait_for(second, ("skip", None))

    wait_until_shown(page, third)
    page.keyboard.press("/")
    page.keyboard.type("él")
    page.keyboard.press("Enter")
    site.wait_for(third, ("label", MANY.index("Éland")))


def test_the_search_among_classes_fits_a_finger(start_site, visit):
    site = start_site(classes=MANY)
    site.ask(1)
    page = visit("/label", at=site, viewport=PHONE, has_touch=True, is_mobile=True)
    field = page.locator("#find")
    field.wait_for()

    assert field.bounding_box()["height"] >= 44
    # Below that, phones zoom in.
    assert field.evaluate("each => parseFloat(getComputedStyle(each).fontSize)") >= 16


def test_with_few_classes_there_is_nothing_to_search(site, labelling_page):
    (question,) = site.ask(1)
    page = labelling_page(question)

    page.keyboard.press("/")

    assert page.locator("#find").is_hidden()
    label(page, question, "1")
    site.wait_for(question, ("label", 0))


def middle(box):
    return box["x"] + box["width"] / 2


def test_charts_show_where_an_alarm_was_raised(site, visit):
    now = time.time()

    def take_turn(number, entropy):
        site.storage.turns.plan(Turn(number, (), 0, at=now - 100 + number))
        site.storage.turns.finish(number, {"entropy": entropy, "drift_mix": 0.1})

    for number, entropy in enumerate(ENTROPY):
        take_turn(number, entropy)
    page = visit("/")
    page.locator("svg[aria-label^='Entropy: now 1.']").wait_for()
    assert page.locator("svg .alarm").count() == 0

    site.storage.events.add("alarm", "learner", what="entropy", text="Entropy rose <b>a lot</b>.")

    entropy = page.locator("svg[aria-label^='Entropy']")
    entropy.locator(".alarm title", has_text="<b>a lot</b>").wait_for(state="attached")
    alarm = entropy.locator(".alarm").bounding_box()
    point = entropy.locator(".point").bounding_box()
    assert middle(alarm) == pytest.approx(middle(point), abs=2)
    assert page.locator("svg[aria-label^='Change of the predicted mix'] .alarm").count() == 1
    page.locator("#alarms li", has_text="Entropy rose <b>a lot</b>.").wait_for()
    entropy.hover()
    page.locator("#tip:visible", has_text="turn 2 ·").wait_for()
    entropy.press("ArrowRight")
    page.locator("#tip:visible", has_text="turn 3 ·").wait_for()
    take_turn(5, 1.2)
    page.locator("svg[aria-label^='Entropy: now 1.2.']").wait_for()
    assert "turn 3 ·" in page.locator("#tip:visible").text_content()
    assert entropy.locator(".cross").count() == 1


def test_a_version_without_weights_cannot_be_brought_back(site, visit):
    now = time.time()
    site.storage.versions.add(Version(1, 3, "1.safetensors", "b", 9, now))

    page = visit("/")

    page.locator("[data-version='1']", has_text="weights no longer stored").wait_for()
    assert page.locator("[data-version='1'] button").count() == 0
