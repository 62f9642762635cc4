"""Tools of the labelling page: zoom, guide, remarks, and the list of one's own answers."""

import pytest

from live_site import PHONE, press, wait_until_shown

pytestmark = pytest.mark.browser


WIDER = "wanted => document.querySelector('#picture img').getBoundingClientRect().width > wanted"


def scale(page):
    return page.locator("#picture img").evaluate("one => one.getBoundingClientRect().width")


def test_a_picture_is_zoomed_by_keys_and_the_next_one_is_whole_again(site, labelling_page):
    first, second = site.ask(2)
    page = labelling_page(first)
    page.locator("#picture img.coarse").wait_for()
    whole = scale(page)

    page.keyboard.press("+")
    page.wait_for_function(WIDER, arg=1.5 * whole)
    page.locator("#picture").dblclick()
    page.wait_for_function(f"wanted => !({WIDER})(wanted)", arg=1.1 * whole)
    page.locator("#zoom-in").click()
    press(page, "1", shows=second)
    page.locator("#picture img.coarse").wait_for()

    assert scale(page) == pytest.approx(whole, rel=0.05)  # it grows a little as it comes


def test_a_comment_and_a_flag_go_with_the_answer(site, labelling_page):
    first, second = site.ask(2)
    page = labelling_page(first)
    page.keyboard.press("!")
    page.keyboard.press(";")
    page.keyboard.type("Two 1s?")
    page.keyboard.press("Enter")
    press(page, "1", shows=second)
    assert page.locator("#flag").get_attribute("aria-pressed") == "false"
    page.keyboard.press("2")

    site.wait_for(first, ("label", 0))
    site.wait_for(second, ("label", 1))
    remarks = [site.storage.questions.answers(one)[0] for one in (first, second)]
    assert [(one.comment, bool(one.flagged)) for one in remarks] == [
        ("Two 1s?", True),
        (None, False),
    ]


def test_an_answer_is_changed_from_the_list(site, visit):
    first, second, third = site.ask(3)
    page = visit("/label", viewport=PHONE)
    for question, key in ((first, "1"), (second, "2")):
        wait_until_shown(page, question)
        page.keyboard.press(key)
    site.wait_for(second, ("label", 1))
    page.locator("#mine-button").click()
    rows = page.locator("#mine-list li")
    rows.nth(1).get_by_role("button", name="Change").click()

    wait_until_shown(page, first)
    press(page, "5", shows=third)
    site.wait_for(first, ("label", 4))
    site.wait_for(second, ("label", 1))


def test_an_answer_that_counts_is_final_in_the_list(start_site, labelling_page):
    site = start_site(settle_seconds=0.0)
    (question,) = site.ask(1)
    page = labelling_page(question, at=site)
    page.keyboard.press("3")
    site.wait_for(question, ("label", 2))
    site.storage.questions.settle()

    page.locator("#mine-button").click()

    page.locator("#mine-list li", has_text="final").wait_for()
    assert page.locator("#mine-list li b").text_content() == "cat"


def test_the_guide_is_offered_if_there_is_one(start_site, site, visit):
    guided = start_site(tables={"labelling": {"instructions": "Look <twice>."}})
    for place in (guided, site):
        place.ask(1)
    page, other = visit("/label", at=guided), visit("/label")
    page.locator("#guide-button").wait_for()
    page.keyboard.press("?")

    assert page.locator("#guide[open] #guide-text").inner_text() == "Look <twice>."
    page.keyboard.press("Escape")
    page.locator("#guide").wait_for(state="hidden")
    wait_until_shown(other, 1)
    assert other.locator("#guide-button").is_hidden()


def test_keys_are_on_all_buttons_also_where_a_class_is_called_like_its_key(
    start_site, labelling_page
):
    site = start_site(classes=tuple("0123456789"))
    (question,) = site.ask(1)
    page = labelling_page(question, at=site)

    assert page.locator("#classes kbd").all_text_contents() == list("0123456789")
    assert page.locator("#guesses kbd").all_text_contents() == ["3", "1", "0"]
