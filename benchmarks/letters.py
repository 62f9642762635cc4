"""Draw a data set of letters in four styles: a domain shift that needs no download.

    python benchmarks/letters.py data/letters

writes `data/letters/STYLE/LETTER/NUMBER.png`, 32 x 32 pixels, 26 classes. Typefaces are those that
matplotlib contains. The source is `print`: upright typefaces, black on white. The targets are
`italic` (other typefaces), `photocopy` (faint, blurred, noisy and dirty) and `sign` (bright letters
of other typefaces on coloured walls, seen from the side). The pictures are the same every time.
"""

from __future__ import annotations

import argparse
import string
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from attakit.randomness import generator

SIDE = 32
FINE = 96  # letters are drawn at three times the size
Picture = NDArray[np.float64]  # (side, side, 3), 0 to 1

UPRIGHT = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold", "STIXGeneral")
SLANTED = ("DejaVuSerif-Italic", "STIXGeneralItalic", "STIXGeneralBolIta", "cmti10", "cmmi10")
TECHNICAL = ("DejaVuSansMono", "DejaVuSansMono-Bold", "cmtt10", "cmss10", "cmb10")


class Style(NamedTuple):
    """How the letters of one domain look."""

    typefaces: tuple[str, ...]
    turn: float  # degrees to either side
    finish: Callable[[Picture, Generator], Picture]  # gets ink (1) on paper (0)
    count: int  # of each letter


def main() -> None:
    """Draw all styles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, style in STYLES.items():
        for letter in string.ascii_uppercase:
            place = folder / name / letter
            place.mkdir(parents=True, exist_ok=True)
            draw = generator(0, "letters", f"{name}/{letter}")
            for number in range(style.count):
                picture = style.finish(ink(letter, style, draw), draw)
                pixels = (255 * picture.clip(0, 1)).round().astype(np.uint8)
                Image.fromarray(pixels).save(place / f"{number:03}.png")
        print(f"Wrote {26 * style.count:,} images to {folder / name}.")


def ink(letter: str, style: Style, draw: Generator) -> Picture:
    """Draw a letter in a random typeface, slightly rotated, moved and scaled."""
    size = round(FINE * draw.uniform(0.55, 0.8))
    face = font(style.typefaces[draw.integers(len(style.typefaces))], size)
    page = Image.new("L", (FINE, FINE))
    centre = tuple(FINE / 2 + draw.uniform(-6, 6, 2))
    ImageDraw.Draw(page).text(centre, letter, fill=255, font=face, anchor="mm")
    page = page.rotate(draw.uniform(-style.turn, style.turn), Image.Resampling.BICUBIC)
    page = page.resize((SIDE, SIDE), Image.Resampling.BOX)
    return np.repeat(np.asarray(page, dtype=np.float64)[..., None] / 255, 3, axis=2)


@cache
def font(name: str, size: int) -> ImageFont.FreeTypeFont:
    """A typeface that matplotlib contains."""
    return ImageFont.truetype(Path(mpl.get_data_path(), "fonts", "ttf", f"{name}.ttf"), size)


def printed(letter: Picture, draw: Generator) -> Picture:
    """Black on white."""
    return 1 - draw.uniform(0.8, 1.0) * letter + draw.normal(0, 0.02, letter.shape)


def photocopied(letter: Picture, draw: Generator) -> Picture:
    """Faint and blurred on uneven grey, with noise and specks of dirt."""
    soft = blurred(letter, draw.uniform(0.6, 1.3))
    light = draw.uniform(0.55, 0.85) + 0.25 * hills(draw, 3)
    noise = draw.normal(0, 0.1, (SIDE, SIDE, 1))
    specks = (draw.random((SIDE, SIDE, 1)) < 0.02) * draw.uniform(0.3, 0.6)
    return light - draw.uniform(0.3, 0.55) * soft + noise - specks


def painted(letter: Picture, draw: Generator) -> Picture:
    """Bright paint on a dark, coloured, uneven wall, seen from the side."""
    wall = draw.uniform(0.1, 0.5, 3) + 0.35 * hills(draw, 6)
    paint = draw.uniform(0.6, 1.0, 3)
    seen = sheared(letter, draw.uniform(-0.3, 0.3))
    return wall * (1 - seen) + paint * seen


def hills(draw: Generator, count: int) -> Picture:
    """Return a smooth grey pattern from -0.5 to 0.5 with some hills across."""
    coarse = Image.fromarray((255 * draw.random((count, count))).astype(np.uint8))
    smooth = coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(smooth, dtype=np.float64)[..., None] / 255 - 0.5


def blurred(picture: Picture, radius: float) -> Picture:
    """Blur a picture."""
    image = Image.fromarray((255 * picture).astype(np.uint8))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(radius)), dtype=np.float64) / 255


def sheared(picture: Picture, slope: float) -> Picture:
    """Move the left side of a picture up and its right side down."""
    image = Image.fromarray((255 * picture).astype(np.uint8))
    shift = (1, 0, 0, slope, 1, -slope * SIDE / 2)
    moved = image.transform(image.size, Image.Transform.AFFINE, shift, Image.Resampling.BILINEAR)
    return np.asarray(moved, dtype=np.float64) / 255


STYLES = {
    "print": Style(UPRIGHT, 6, printed, 120),
    "italic": Style(SLANTED, 15, printed, 60),
    "photocopy": Style(UPRIGHT, 10, photocopied, 60),
    "sign": Style(TECHNICAL, 12, painted, 60),
}

if __name__ == "__main__":
    main()
