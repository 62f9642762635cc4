"""What pages do when something goes wrong between them and the server, or between two keys."""

import httpx2
import pytest

from live_site import press, wait_until_shown

pytestmark = pytest.mark.browser

KEYS = "123"  # of the first classes


def labelling(visit, site, pattern, meet):
    """A labelling page some requests of which are met by a function.

    From before the page comes: what is changed under an open page reaches it at some later time.
    """
    page = visit("/docs", at=site)
    page.route(pattern, meet)
    page.goto(site.address + "/label")
    return page


def labelling_in_vain(visit, site, instead=lambda route: route.abort()):
    """A labelling page that gets no word about answers, and what mends it."""
    broken = [True]

    def meet(route):
        if broken:
            instead(route)
        else:
            route.continue_()

    return labelling(visit, site, "**/answer", meet), broken.clear


def lose_the_reply(route):
    """Bring an answer to the server, past the browser: waiting inside a route can hang."""
    sent = route.request
    httpx2.post(sent.url, content=sent.post_data_buffer, headers=sent.headers).raise_for_status()
    route.abort()


def speak_for_the_server(route):
    """As the log-in page of a network would."""
    route.fulfill(status=200, content_type="text/html", body="<h1>Welcome to our café</h1>")


def test_answers_are_kept_while_the_connection_is_lost(site, labelling_page):
    numbers = site.ask(5)
    page = labelling_page(numbers[0])
    page.wait_for_load_state("networkidle")

    page.context.set_offline(True)
    page.locator("#connection", has_text="Offline").wait_for()
    for place in range(3):
        wait_until_shown(page, numbers[place])
        page.keyboard.press(KEYS[place])

    page.locator("#connection", has_text="Offline, 3 answers kept").wait_for()
    assert all(site.said(question) == [] for question in numbers)
    page.keyboard.press("u")
    page.locator("#connection", has_text="Offline, 2 answers kept").wait_for()
    wait_until_shown(page, numbers[2])
    page.keyboard.press("9")
    page.context.set_offline(False)
    page.locator("#connection").wait_for(state="hidden")
    for place, label in enumerate([0, 1, 8]):
        site.wait_for(numbers[place], ("label", label))
    wait_until_shown(page, numbers[3])


def test_an_undo_of_an_answer_that_may_have_arrived_is_sent_after_it(site, visit):
    first, second = site.ask(2)
    # The server takes the answer, but its word of it is lost.
    page, mend = labelling_in_vain(visit, site, lose_the_reply)
    wait_until_shown(page, first)
    page.keyboard.press("1")
    page.locator("#connection", has_text="Offline, 1 answer kept").wait_for()
    assert site.said(first) == [("label", 0)]

    press(page, "u", shows=first)
    page.keyboard.press("2")
    mend()

    page.locator("#connection").wait_for(state="hidden")
    wait_until_shown(page, second)
    assert site.said(first) == [("label", 1)]


def test_answers_survive_a_reload(site, visit):
    first, second = site.ask(2)
    page, mend = labelling_in_vain(visit, site)
    wait_until_shown(page, first)
    page.keyboard.press("7")
    page.locator("#connection", has_text="1 answer kept").wait_for()

    page.reload()
    page.locator("#connection", has_text="1 answer kept").wait_for()
    assert site.said(first) == []
    mend()

    page.locator("#connection").wait_for(state="hidden")
    wait_until_shown(page, second)
    assert site.said(first) == [("label", 6)]


def test_an_answer_is_kept_when_somebody_else_speaks_for_the_server(site, visit):
    (first,) = site.ask(1)
    page, mend = labelling_in_vain(visit, site, speak_for_the_server)
    wait_until_shown(page, first)

    page.keyboard.press("1")
    page.locator("#connection", has_text="Offline, 1 answer kept").wait_for()
    mend()

    page.locator("#connection").wait_for(state="hidden")
    assert site.said(first) == [("label", 0)]


def test_an_undo_that_is_sent_later_gives_no_other_question_away(site, visit):
    first, *_ = site.ask(3)
    page, mend = labelling_in_vain(visit, site, lose_the_reply)
    wait_until_shown(page, first)
    page.keyboard.press("1")
    page.locator("#connection", has_text="Offline, 1 answer kept").wait_for()
    press(page, "u", shows=first)
    mend()
    page.locator("#connection").wait_for(state="hidden")

    other = visit("/label", "bob")

    other.get_by_role("heading", name="Nothing for you right now").wait_for()
    assert site.said(first) == []


def test_an_undo_that_comes_too_late_is_told(start_site, visit):
    site = start_site(settle_seconds=0.0)
    (question,) = site.ask(1)
    page, mend = labelling_in_vain(visit, site, lose_the_reply)
    wait_until_shown(page, question)
    page.keyboard.press("1")
    page.locator("#connection", has_text="Offline, 1 answer kept").wait_for()
    site.storage.questions.settle()

    page.keyboard.press("u")
    mend()

    page.locator("#notice", has_text="can no longer be undone: it counts").wait_for()
    assert site.said(question) == [("label", 0)]


def test_answers_given_just_before_leaving_arrive(site, visit):
    numbers = site.ask(3)
    page = visit("/label")

    for place, question in enumerate(numbers):
        wait_until_shown(page, question)
        page.keyboard.press(KEYS[place])
    page.goto(site.address + "/docs")

    for place, question in enumerate(numbers):
        site.wait_for(question, ("label", place))


def test_a_picture_that_comes_late_is_not_shown_with_the_next_question(site, visit):
    first, second = site.ask(2)
    late = []
    page = labelling(visit, site, "**/s0/image", lambda route: late.append(route))
    wait_until_shown(page, first)
    press(page, "Space", shows=second)
    page.locator("#picture img[src$='s1/image']").wait_for()

    with page.expect_request_finished(lambda request: request.url.endswith("s0/image")):
        late[0].continue_()
    page.wait_for_timeout(200)

    assert page.locator("#picture img").get_attribute("src").endswith("s1/image")


def test_a_picture_that_did_not_come_is_asked_for_again(site, visit):
    tried = []

    def meet(route):
        tried.append(route)
        if len(tried) == 1:
            route.abort()
        else:
            route.continue_()

    site.ask(1)
    page = labelling(visit, site, "**/image", meet)

    page.locator("#picture img.coarse").wait_for()

    assert len(tried) == 2


def test_space_skips_also_after_a_click_on_a_button(site, labelling_page):
    first, second, third = site.ask(3)
    page = labelling_page(first)
    page.locator("#classes button", has_text="elk").click()
    wait_until_shown(page, second)
    press(page, "1", shows=third)

    page.keyboard.press("Space")

    site.wait_for(third, ("skip", None))


def test_enter_that_is_held_down_answers_one_question(site, labelling_page):
    first, second, _ = site.ask(3)
    page = labelling_page(first)
    page.locator("#guesses button").first.focus()

    for _ in range(3):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")

    site.wait_for(first, ("label", 3))
    wait_until_shown(page, second)
    assert site.said(second) == []


def test_skip_and_undo_work_with_caps_lock(site, labelling_page):
    first, second = site.ask(2)
    page = labelling_page(first)

    press(page, "N", shows=second)
    site.wait_for(first, ("none", None))
    page.keyboard.press("U")

    wait_until_shown(page, first)


def test_a_forgotten_picture_vanishes_from_an_open_dashboard(site, visit):
    site.ask(1)
    page = visit("/")
    page.locator("#recent img.coarse").wait_for()

    site.storage.samples.forget("s0", "boss")

    page.locator("#recent .thumb", has_text="removed").wait_for()
    assert page.locator("#recent img").count() == 0
