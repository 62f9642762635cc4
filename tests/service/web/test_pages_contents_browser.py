"""The labelling page without pictures: numbers, curves, texts, and what senders say of them."""

from io import BytesIO

import numpy as np
import pytest

from live_site import PHONE

pytestmark = pytest.mark.browser


def array(values):
    file = BytesIO()
    np.save(file, np.asarray(values, dtype=np.float32), allow_pickle=False)
    return file.getvalue()


def shape(*lengths, **more):
    return {"tables": {"input": {"kind": "array", "shape": lengths, **more}}}


def test_numbers_are_shown_with_the_names_of_their_columns(start_site, labelling_page):
    site = start_site(**shape(3, columns=("heat", "load", "tilt")))
    notes = {"machine": "<b>B</b>"}
    question = site.put(content=array([1, 2.5, -3]), caller_id="order 17", notes=notes)
    page = labelling_page(question, at=site, viewport=PHONE)

    assert page.locator("#picture th").all_text_contents() == ["heat", "load", "tilt"]
    assert page.locator("#picture td").all_text_contents() == ["1", "2.5", "−3"]
    assert page.locator("#about-sample dd").all_text_contents() == ["order 17", "<b>B</b>"]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.keyboard.press("2")
    site.wait_for(question, ("label", 1))


def test_many_numbers_are_drawn_as_curves(start_site, labelling_page):
    site = start_site(**shape(2, 200))
    question = site.put(content=array(np.sin(np.arange(400) / 20).reshape(2, 200)))
    page = labelling_page(question, at=site)

    assert page.locator("#picture .plot path.line").count() == 2


def test_a_text_is_shown_as_it_is(start_site, visit, labelling_page):
    table = {"kind": "text", "tokenizer": "ngrams", "length": 8}
    site = start_site(tables={"input": table})
    question = site.put(content=b"x", text="Pump <i>rattles</i>\nsince Monday")
    page = labelling_page(question, at=site)

    assert page.locator(".sample-text").inner_text() == "Pump <i>rattles</i>\nsince Monday"
    visit("/", at=site).locator(".recent .words", has_text="rattles").wait_for()
