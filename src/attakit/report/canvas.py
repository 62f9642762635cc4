"""Figures as image files, drawn with matplotlib."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from PIL import Image

from attakit.errors import MissingExtra, SettingError
from attakit.files import atomic_write

INK, FAINT, RULE, EMPTY = "#222222", "#6b7078", "#dddddd", "#f1efe8"
# Okabe and Ito's colours, which are also distinct for people with other colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6a4fa3", "#6d6d6d")
# Paul Tol's, for many clusters; neighbours in the list differ in brightness as well.
MANY_COLOURS = (
    *("#332288", "#88CCEE", "#117733", "#DDCC77", "#CC6677", "#44AA99", "#882255", "#999933"),
    *("#AA4499", "#6699CC", "#661100", "#4477AA", "#228833", "#EE6677", "#CCBB44", "#66CCEE"),
)
ENDINGS = (".png", ".svg", ".pdf")
_DOTS_PER_INCH = 110
_PAD = 0.1  # inches around every part
_PNG_COLOURS = 256  # a palette of this size makes files three times smaller


def new_figure(width: float, height: float) -> Any:
    """Create an empty figure with a size in inches and automatic layout."""
    figure = import_drawing("matplotlib.figure").Figure(
        figsize=(width, height), layout="constrained", facecolor="white"
    )
    figure.get_layout_engine().set(w_pad=_PAD, h_pad=_PAD)
    return figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure; the file's ending sets the format. Equal figures give equal files."""
    check_ending(path)
    # No dates, versions or random names.
    nothing = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with atomic_write(path) as draft:
        with import_drawing("matplotlib").rc_context({"svg.hashsalt": "attakit"}):
            figure.savefig(draft, dpi=_DOTS_PER_INCH, metadata=nothing[path.suffix.lower()])
        if path.suffix.lower() == ".png":
            with Image.open(draft) as picture:
                small = picture.convert("RGB").quantize(_PNG_COLOURS, dither=Image.Dither.NONE)
            small.save(draft, optimize=True)


def check_ending(path: Path) -> None:
    """Raise `SettingError` unless the ending of a file is that of a figure."""
    if path.suffix.lower() not in ENDINGS:
        raise SettingError(f"A figure's file must end in {', '.join(ENDINGS)}, got {path.name!r}.")


def soften(axes: Any) -> None:
    """Make ticks and frame less prominent, so that the data stand out."""
    axes.tick_params(colors=FAINT, labelsize=8, length=0)
    for spine in axes.spines.values():
        spine.set_color(RULE)


def import_drawing(name: str) -> Any:
    """Import a matplotlib module only when something is drawn: other commands should not wait."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra(
            "Figures need matplotlib, which is not installed. Install it with "
            "`pip install 'attakit[report]'`."
        ) from error
