"""Text on all pages is readable, in light and in dark mode."""

import re

import pytest

from attakit.charts import read_assets

TEXTS = ("ink", "soft", "accent", "good", "bad")
GROUNDS = ("page", "paper", "band")
CURVES = tuple(f"s{number}" for number in range(8))
ENOUGH, ENOUGH_FOR_LINES = 4.5, 3.0  # contrast that WCAG asks for


def colours(mode):
    light, dark = re.split(r"@media[^{]*dark[^{]*\{", read_assets()["colours.css"])
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", light))
    return found | (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", dark)) if mode == "dark" else {}
    )


def brightness(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * one for one in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(mode):
    known = colours(mode)
    pairs = [(text, ground) for text in TEXTS for ground in GROUNDS]
    pairs += [("on-accent", "accent"), ("good", "good-tint"), ("bad", "warn-tint"), ("ink", "tint")]
    faint = [pair for pair in pairs if contrast(*(known[one] for one in pair)) < ENOUGH]
    assert faint == []


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_curves_stand_out_from_the_paper(mode):
    known = colours(mode)
    faint = [one for one in CURVES if contrast(known[one], known["paper"]) < ENOUGH_FOR_LINES]
    assert faint == []
