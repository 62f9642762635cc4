"""Logging in with the address that a first start prints."""

import pytest

pytestmark = pytest.mark.browser


def test_the_printed_address_needs_one_key_and_leaves_no_token_in_the_history(start_site, visit):
    site = start_site(is_open=False)
    token = site.storage.tokens.create("admin", "admin")

    page = visit(f"/login#token={token}", name=None, at=site)
    page.wait_for_function("document.activeElement.matches('.login button')")
    address = page.url
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.address}/")

    assert address == f"{site.address}/login"
    assert page.locator("h1").first.is_visible()


def test_the_printed_address_works_where_the_page_is_shown_already(start_site, visit):
    site = start_site(is_open=False)
    token = site.storage.tokens.create("admin", "admin")

    page = visit("/login", name=None, at=site)
    page.evaluate(f"location.hash = 'token={token}'")
    page.wait_for_function("document.activeElement.matches('.login button')")
    page.keyboard.press("Enter")

    page.wait_for_url(f"{site.address}/")
