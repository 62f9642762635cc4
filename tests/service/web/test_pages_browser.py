"""The pages as people use them: a real server, a real browser."""

from __future__ import annotations

import time

import pytest

from attakit.service.storage.rows import Gate, Version
from live_site import PHONE, press, wait_until_shown

pytestmark = pytest.mark.browser

KEYS = "1234567890"  # of the classes, in this order
NOTHING_KEPT = "!Object.keys(localStorage).some((key) => key.startsWith('attakit.answer.'))"
THUMB = 44  # pixels that a finger hits


def shown(page):
    """The number of the question on the screen, once there is one."""
    desk = page.locator("#desk:not([hidden])[data-question]:not([data-question=''])")
    desk.wait_for()
    return int(desk.get_attribute("data-question"))


def test_ten_images_are_labelled_by_keyboard(site, visit):
    numbers = site.ask(10)
    page = visit("/label")

    for place, question in enumerate(numbers):
        wait_until_shown(page, question)
        page.locator("#picture img.coarse").wait_for()
        page.keyboard.press(KEYS[place])

    page.get_by_role("heading", name="Nothing for you right now").wait_for()
    for place, question in enumerate(numbers):
        site.wait_for(question, ("label", place))
    assert page.locator("#answered").text_content() == "10"


def test_on_a_slow_connection_no_answer_is_counted_twice(site, visit, monkeypatch):
    lease = site.storage.questions.lease
    monkeypatch.setattr(
        site.storage.questions, "lease", lambda *about: time.sleep(0.6) or lease(*about)
    )
    numbers = site.ask(4)
    page = visit("/label")

    for question in numbers:
        wait_until_shown(page, question)
        page.keyboard.press("1")

    page.get_by_role("heading", name="Nothing for you right now").wait_for()
    assert page.locator("#answered").text_content() == "4"


def test_answers_are_undone_skipped_and_refused_by_keyboard(site, labelling_page):
    first, second, third = site.ask(3)
    page = labelling_page(first)

    press(page, "4", shows=second)
    site.wait_for(first, ("label", 3))
    press(page, "u", shows=first)
    site.wait_for(first)
    press(page, "Space", shows=second)
    press(page, "n", shows=third)
    page.keyboard.press("2")
    press(page, "Backspace", shows=third)
    page.keyboard.press("5")

    site.wait_for(first, ("skip", None))
    site.wait_for(second, ("none", None))
    site.wait_for(third, ("label", 4))


def test_one_key_says_yes_and_one_says_no(site, labelling_page):
    first, second, third = site.ask(3, proposed=2)
    (fourth,) = site.ask(1, start=3)
    page = labelling_page(first)
    assert page.locator("#yes-no-title").text_content() == "Is this “cat”?"
    assert page.locator("#guessing, #all, #none").evaluate_all(
        "all => all.every((one) => one.hidden)"
    )

    page.keyboard.press("1")  # the key of a class, which is not asked for
    press(page, "y", shows=second)
    press(page, "n", shows=third)
    press(page, "u", shows=second)
    page.locator("#no").click()
    wait_until_shown(page, third)
    press(page, "Space", shows=fourth)
    page.keyboard.press("n")  # here it is "none of these"

    site.wait_for(first, ("label", 2))
    site.wait_for(second, ("no", None))
    site.wait_for(third, ("skip", None))
    site.wait_for(fourth, ("none", None))


def test_an_answer_that_counts_already_is_not_undone(start_site, labelling_page):
    site = start_site(settle_seconds=0.0)
    (question,) = site.ask(1)
    page = labelling_page(question, at=site)
    page.keyboard.press("1")
    site.wait_for(question, ("label", 0))
    page.wait_for_function(NOTHING_KEPT)  # the page has heard that its answer was taken
    site.storage.questions.settle()

    page.keyboard.press("u")

    page.locator("#notice", has_text="no answer that can still be undone").wait_for()
    assert site.said(question) == [("label", 0)]


def test_buttons_and_tab_answer_too(site, labelling_page):
    first, second, third = site.ask(3)
    page = labelling_page(first)

    page.locator("#classes button", has_text="elk").click()
    wait_until_shown(page, second)
    page.locator("#guesses button").first.focus()
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.matches('#guesses :focus-visible')")
    press(page, "Enter", shows=third)

    assert focused
    site.wait_for(first, ("label", 4))
    site.wait_for(second, ("label", 1))


def test_keys_are_names_of_one_letter_or_digits_then_letters(site, visit):
    page = visit("/docs")
    module = page.locator("link[href$='base.css']").get_attribute("href").replace("base.css", "")
    keys = """async ([module, classes]) => {
        const { assignKeys, classOf, keyOf } = await import(module + "keys.js");
        assignKeys(classes);
        return classes.map((_, label) => keyOf(label) ?? "").join("") + classOf("u");
    }"""

    assert page.evaluate(keys, [module, list("0123")]) == "0123-1"
    assert page.evaluate(keys, [module, ["cat", "dog"]]) == "12-1"
    many = page.evaluate(keys, [module, [f"class {n}" for n in range(40)]])
    assert many == "1234567890abcdefghijklmopqrstvwxyz-1"


def test_two_people_at_once_never_see_the_same_question(site, visit):
    numbers = site.ask(12)
    pages = {"ada": visit("/label", "ada"), "bob": visit("/label", "bob")}
    seen = {"ada": [], "bob": []}

    deadline = time.monotonic() + 60
    while sum(map(len, seen.values())) < len(numbers) and time.monotonic() < deadline:
        for name, page in pages.items():
            if page.locator("#desk").is_visible() or len(seen[name]) < 3:
                question = shown(page)
                seen[name].append(question)
                page.keyboard.press("1")
                site.wait_for(question, ("label", 0))

    assert min(len(each) for each in seen.values()) >= 3
    assert sorted(seen["ada"] + seen["bob"]) == list(numbers)
    who = {n: site.storage.questions.answers(n)[0].annotator for n in numbers}
    assert {n for n in numbers if who[n].endswith("ada")} == set(seen["ada"])


def test_a_question_stays_with_who_looks_at_it_and_goes_on_when_they_leave(
    start_site, visit, labelling_page
):
    site = start_site(lease_seconds=10.0)
    (question,) = site.ask(1)
    ada = labelling_page(question, "ada", at=site)
    bob = visit("/label", "bob", at=site)
    bob.get_by_role("heading", name="Nothing for you right now").wait_for()

    ada.wait_for_timeout(12_000)
    assert bob.locator("#desk").is_hidden()
    ada.goto(site.address + "/docs")

    wait_until_shown(bob, question)


def test_a_person_who_has_gone_holds_nothing_and_can_come_back(site, visit):
    (question,) = site.ask(1)
    page = visit("/login", "ada")
    page.clock.install()
    page.goto(site.address + "/label")
    wait_until_shown(page, question)

    page.clock.fast_forward("10:00")
    page.get_by_role("heading", name="Taking a break?").wait_for()
    page.get_by_role("button", name="Continue").click()

    wait_until_shown(page, question)


def test_waiting_ends_by_itself(site, visit):
    page = visit("/label")
    page.get_by_role("heading", name="Nothing to ask right now").wait_for()

    (question,) = site.ask(1)

    wait_until_shown(page, question)
    page.locator("#news", has_text="The model guesses dog 60 %").wait_for(state="attached")


def test_a_name_is_asked_once_on_an_open_server(site, visit):
    (question,) = site.ask(1)
    page = visit("/label", name=None)

    page.get_by_label("Name").fill("Zoë Ω")
    page.get_by_role("button", name="Start labelling").click()
    wait_until_shown(page, question)
    page.reload()
    wait_until_shown(page, question)
    page.keyboard.press("1")

    site.wait_for(question, ("label", 0))
    assert site.storage.questions.answers(question)[0].annotator.endswith("Zoë Ω")


def test_the_dashboard_updates_by_itself(site, visit):
    page = visit("/")
    page.get_by_role("heading", name="No data yet").wait_for()

    (question,) = site.ask(1)

    page.locator("#questions-open", has_text="1 open").wait_for()
    page.locator("[data-open-count]", has_text="1").wait_for()
    page.locator("#recent img.coarse").wait_for()
    assert page.locator("#welcome").is_hidden()
    site.storage.questions.answer(question, "bob", "label", 3, "k")
    page.locator("#recent", has_text="bob").wait_for()


def add_candidates(site):
    now = time.time()
    for file in ("1.safetensors", "2.safetensors"):
        (site.versions / file).write_bytes(b"weights")
    site.storage.versions.add(Version(1, 3, "1.safetensors", "b", 9, now))
    site.storage.versions.gate(1, Gate(True, "Better by 4 points.", {"audit_accuracy": 0.9}, now))
    site.storage.versions.promote(1, "Passed the gate.", "learner")
    site.storage.versions.add(Version(2, 5, "2.safetensors", "c", 14, now))
    site.storage.versions.gate(2, Gate(False, "Worse on the source set.", {}, now))


def test_a_version_is_rolled_back_after_a_confirmation(site, visit):
    add_candidates(site)
    page = visit("/")
    page.locator("[data-version='1']", has_text="serves now").wait_for()
    page.locator("[data-version='2']", has_text="Worse on the source set.").wait_for()

    page.locator("[data-version='0'] button").click()
    page.get_by_role("button", name="Cancel").click()
    assert site.storage.versions.current().version == 1
    page.locator("[data-version='0'] button").click()
    page.get_by_role("button", name="Use version 0").click()

    page.locator("[data-version='0']", has_text="serves now").wait_for()
    assert site.storage.versions.current().version == 0


def test_learning_is_paused_and_resumed(site, visit):
    page = visit("/")

    page.get_by_role("button", name="Pause learning").click()
    page.locator("#facts", has_text="Learning is paused").wait_for()
    assert site.storage.key_values.get("paused", False) is True
    page.get_by_role("button", name="Resume learning").click()

    page.locator("#facts", has_text="Learning is paused").wait_for(state="detached")
    assert site.storage.key_values.get("paused", False) is False


def test_a_person_logs_in_labels_and_logs_out(start_site, visit):
    site = start_site(is_open=False)
    token = site.storage.tokens.create("grace", "label")
    (question,) = site.ask(1)
    page = visit("/label", name=None, at=site)

    page.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="unknown").wait_for()
    page.get_by_label("Token").fill(token)
    press(page, "Enter", shows=question)
    page.keyboard.press("3")
    site.wait_for(question, ("label", 2))
    assert site.storage.questions.answers(question)[0].annotator == "grace"
    page.goto(site.address + "/")
    page.locator("[data-version='0']", has_text="serves now").wait_for()
    assert page.locator("#learning").is_hidden()  # only administrators may

    page.get_by_role("button", name="Log out").click()
    page.goto(site.address + "/")
    page.get_by_role("heading", name="Log in").wait_for()


def test_pages_fit_a_phone_and_fingers(site, visit):
    site.ask(3)
    add_candidates(site)
    page = visit("/label", viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    ready = {"/label": "#guesses button", "/": "#versions-note", "/login": "h1", "/docs": "h1"}

    for path, sign in ready.items():
        page.goto(site.address + path)
        page.locator(sign).first.wait_for()
        page.locator("details.card").evaluate_all("all => all.forEach(one => (one.open = true))")
        width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        heights = page.locator("main button:visible").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect().height)"
        )
        quiet = page.locator("main button.quiet:visible").count()

        assert width[0] <= width[1] == PHONE["width"], path
        assert sum(height < THUMB for height in heights) <= quiet, path


def test_a_thumb_labels_on_a_phone(site, labelling_page):
    first, second = site.ask(2)
    page = labelling_page(first, viewport=PHONE, has_touch=True, is_mobile=True)

    page.locator("#guesses button").first.tap()
    wait_until_shown(page, second)
    page.locator("#none").tap()

    site.wait_for(first, ("label", 3))
    site.wait_for(second, ("none", None))
