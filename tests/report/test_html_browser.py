"""The report as a browser shows it."""

from __future__ import annotations

import os
import shutil

import pytest

from attakit.report import write_report

pytestmark = pytest.mark.browser

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def missing(reason: str) -> None:
    """A developer may lack a browser; the checks that guard the project may not."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def browser():
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - may be missing
    except ImportError:
        missing("playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = [path for name in names if (path := shutil.which(name))]
    with sync_playwright() as playwright:
        path = found[0] if found else playwright.chromium.executable_path
        if not os.path.exists(path):
            missing("no Chromium: install it, or run `playwright install chromium`")
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, tmp_path, make_run):
    folders = [make_run("a", label="source only", right=2, pictures=False), make_run("b")]
    path = tmp_path / "report.html"
    write_report(folders, path, "Looked at in a browser")
    tab = browser.new_page(viewport={"width": 390, "height": 800})
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

    slider = page.locator("#slider")
    slider.focus()
    slider.press("Home")
    assert page.locator("#moment").text_content().startswith("Step 0 · ")
    slider.press("ArrowRight")
    assert page.locator("#moment").text_content() == (
        "Step 1 · clusters 3 · earlier anchors 1 · asked 1"
    )
    assert page.locator("#scene .mark.known").count() == 1
    assert page.locator("#scene .mark.chosen").count() == 1
    assert page.locator("#scene .mark.new").count() == 5
    page.locator("#faces").uncheck()
    assert page.locator("#scene image").count() == 0

    page.locator("#play").click()
    assert page.locator("#play").get_attribute("aria-label") == "Pause"
    page.locator("#moment", has_text="Step 2 ·").wait_for()

    page.locator("[data-verdict=wrong]").click()
    assert page.locator(".cards li:visible").count() == page.locator(".cards li.wrong").count() == 2

    page.locator("[data-curves=so_far]").click()
    chart = page.locator("#accuracy svg")
    chart.focus()
    chart.press("ArrowLeft")
    assert "42 samples · night" in page.locator("#tip").text_content()

    page.locator(".legend button").first.click()
    assert page.locator("[data-chart] svg path.line").count() == 3
    assert page.complaints == []
