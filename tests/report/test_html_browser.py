"""The report as a browser shows it."""

from __future__ import annotations

import re

import pytest

from attakit.report import write_report

pytestmark = pytest.mark.browser

ALL_IN_PLACE = """() => {
    const scene = document.querySelector(".view:not([hidden]) .scene");
    const room = scene.getBoundingClientRect();
    return [...scene.querySelectorAll(".mark.new")].every((mark) => {
        const box = mark.getBoundingClientRect();
        return room.left < box.left && box.right < room.right;
    });
}"""


@pytest.fixture
def page(chromium, tmp_path, make_run):
    folders = [make_run("a", label="source only", right=2, pictures=False), make_run("b")]
    return open_report(chromium, tmp_path, folders)


def open_report(chromium, tmp_path, folders):
    path = tmp_path / "report.html"
    write_report(folders, path, "Looked at in a browser")
    tab = chromium.new_page(viewport={"width": 390, "height": 800})
    tab.complaints = []
    tab.on("console", lambda message: tab.complaints.append(message.text))
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on(
        "request", lambda r: r.url.startswith(("file:", "data:")) or tab.complaints.append(r.url)
    )
    tab.goto(path.as_uri())
    return tab


def test_everything_on_the_page_works(page):
    # One browser start for all of it: starting takes longer than looking.
    assert page.locator("[data-chart] svg path.line").count() == 6
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    slider = page.locator(".slider")
    slider.focus()
    slider.press("Home")
    assert page.locator(".moment").text_content().startswith("Step 0 · ")
    slider.press("ArrowRight")
    assert page.locator(".moment").text_content() == (
        "Step 1 · clusters 3 · earlier anchors 1 · asked 1"
    )
    assert page.locator(".scene .mark.known").count() == 1
    assert page.locator(".scene .mark.chosen").count() == 1
    assert page.locator(".scene .mark.new").count() == 5
    page.locator(".faces").uncheck()
    assert page.locator(".scene image").count() == 0

    page.locator(".play").click()
    assert page.locator(".play").get_attribute("aria-label") == "Pause"
    # A busy machine may show step 2 for less time than it takes to look.
    page.locator(".moment", has_text=re.compile("Step [2-9] ·")).wait_for(timeout=120_000)

    page.locator("[data-verdict=wrong]").click()
    assert page.locator(".cards li:visible").count() == page.locator(".cards li.wrong").count() == 2

    page.locator("[data-curves=so_far]").click()
    chart = page.locator(".accuracy svg")
    chart.focus()
    chart.press("ArrowLeft")
    assert "42 samples · night" in page.locator("#tip").text_content()

    page.locator(".legend button").first.click()
    assert page.locator("[data-chart] svg path.line").count() == 3
    assert page.complaints == []


def test_of_several_streams_the_chosen_one_is_shown(chromium, tmp_path, make_run):
    folders = [
        make_run(order, experiment={"label": "simatta", "stream": {"order": order}})
        for order in ("gradual", "random")
    ]
    page = open_report(chromium, tmp_path, folders)
    first, second = page.locator(".view").all()
    assert (first.is_visible(), second.is_visible()) == (True, False)

    page.get_by_role("button", name="random stream").click()

    assert (first.is_visible(), second.is_visible()) == (False, True)
    box = second.locator(".accuracy path.line").first.bounding_box()
    assert box["width"] > 100
    second.locator(".slider").press("Home")
    assert second.locator(".moment").text_content().startswith("Step 0 · ")
    page.wait_for_function(ALL_IN_PLACE)  # marks glide there
    assert page.complaints == []
