"""A newcomer's path through a whole service: log in, label, compare, roll back, download."""

import time

import pytest
from safetensors.torch import load_file

from attakit.client import Client
from attakit.errors import ServiceError
from colour_service import COLOURS, ask, audit, open_colours
from live_site import wait_until_shown

pytestmark = pytest.mark.browser

SHOWN = [0, 1, 2, 2, 1, 0, 1, 2, 0, 1]  # classes of ten questions
GUIDE = {"instructions": "Which colour is brightest?", "about": {"red": "Like a tomato."}}


@pytest.fixture
def service(tmp_path):
    tables = {"server": {"open": False}, "labelling": GUIDE}
    with open_colours(tmp_path / "live", **tables) as opened:
        yield opened


@pytest.fixture
def token(service):
    return service.storage.tokens.create("ada", "admin")


@pytest.fixture
def client(service, token):
    with Client(service.address, token, pauses=()) as opened:
        yield opened


def log_in(page, token):
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")


def test_a_newcomer_labels_compares_rolls_back_and_downloads(service, token, visit, tmp_path):
    audit(service, [0, 1, 2] * 8)
    questions = ask(service, SHOWN)
    page = visit("/label", name=None, at=service)
    log_in(page, "wrong")
    page.get_by_role("alert").filter(has_text="unknown").wait_for()
    log_in(page, token)

    label_ten_by_keyboard(service, page, questions)
    correct_the_third(service, page, questions)

    page.get_by_role("link", name="Dashboard").click()
    page.locator("[data-version='1']", has_text="serves now").wait_for()
    page.locator(".recent .remark", has_text="A shadow?").wait_for()
    compare_with_the_source(page)
    roll_back_to_the_source(service, page)
    download_version_1(page, tmp_path)


def label_ten_by_keyboard(service, page, questions):
    wait_until_shown(page, questions[0])
    page.keyboard.press("?")
    page.locator("#guide[open]", has_text="Like a tomato.").wait_for()
    page.keyboard.press("Escape")
    for place, (question, label) in enumerate(zip(questions, SHOWN, strict=True)):
        wait_until_shown(page, question)
        if place == 4:
            page.keyboard.press("!")
            page.keyboard.press(";")
            page.keyboard.type("A shadow?")
            page.keyboard.press("Enter")
        page.keyboard.press(str(label + 1))
    page.get_by_role("heading", name="Nothing for you right now").wait_for()
    for question, label in zip(questions, SHOWN, strict=True):
        service.wait_for(question, ("label", label))
    assert page.locator("#answered").text_content() == "10"


def correct_the_third(service, page, questions):
    page.locator("#mine-button").click()
    rows = page.locator("#mine-list li")
    rows.locator("text=“A shadow?”").wait_for()
    rows.nth(len(SHOWN) - 3).get_by_role("button", name="Change").click()
    wait_until_shown(page, questions[2])
    page.keyboard.press("1")
    service.wait_for(questions[2], ("label", 0))


def compare_with_the_source(page):
    page.locator("#compare-one").select_option("1")
    page.locator("#compare-other").select_option("0")
    page.get_by_role("button", name="Compare").click()
    page.locator(".verdict", has_text="v1 is better than v0: +67 points").wait_for()
    cells = page.locator(".comparison tr", has_text="right on the audit").locator("td")
    assert [text.split("\u00a0")[0] for text in cells.all_inner_texts()] == ["100.0", "33.3"]
    assert page.locator("#comparison .by-class tbody tr").count() == len(COLOURS)


def roll_back_to_the_source(service, page):
    page.locator("[data-version='0'] button").click()
    page.get_by_role("button", name="Use version 0").click()
    page.locator("[data-version='0']", has_text="serves now").wait_for()
    page.locator("#serving", has_text="v0").wait_for()
    assert service.storage.versions.current().version == 0


def download_version_1(page, folder):
    with page.expect_download() as loading:
        page.locator("[data-version='1'] a", has_text="Download").click()
    assert loading.value.suggested_filename == "version-1.safetensors"
    loading.value.save_as(folder / "v1.safetensors")
    assert load_file(folder / "v1.safetensors")["1.weight"].shape == (3, 192)


def test_a_version_that_cannot_be_loaded_is_explained(service, token, visit):
    audit(service, [0, 1])
    page = visit("/", name=None, at=service)
    log_in(page, token)
    page.locator("#compare-one").select_option("2")
    next(service.versions.glob("turn-*1.safetensors")).write_bytes(b"damaged")
    page.get_by_role("button", name="Compare").click()

    page.locator("#comparison .error", has_text="Version 2 cannot be loaded").wait_for()
    assert page.get_by_role("button", name="Compare").is_enabled()


def test_wrong_tokens_versions_and_questions_are_explained(service, client):
    with (
        Client(service.address, "wrong", pauses=()) as stranger,
        pytest.raises(ServiceError, match="token") as refusal,
    ):
        stranger.status()
    assert refusal.value.status == 401
    with pytest.raises(ServiceError, match="No version has this number"):
        client.promote(99)
    with pytest.raises(ServiceError) as refusal:
        client.answer(12345, label=0)
    assert refusal.value.status == 404


def test_an_answer_after_the_lease_has_ended_still_counts(service, tmp_path, visit):
    with open_colours(tmp_path / "hasty", labels={"lease_seconds": 0.1}) as hasty:
        (question,) = ask(hasty, [1])
        with Client(hasty.address, annotator="ada") as ada, Client(hasty.address) as other:
            assert ada.lease().question == question
            time.sleep(0.3)
            assert other.lease().question == question  # the lease has ended
            assert ada.answer(question, label=1) == "accepted"
            assert other.answer(question, label=2) == "conflict"
        page = visit("/label", at=hasty)
        page.locator("#mine-button").click()
        page.locator("#mine-list li", has_text="green").wait_for()
