"""Losses of models trained on samples of low and high entropy, as a table and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from attakit.report.canvas import (
    COLOURS,
    FAINT,
    INK,
    RULE,
    import_drawing,
    new_figure,
    save_figure,
    soften,
)
from attakit.report.runs import grouped
from attakit.report.summaries import MeanStd

_WIDTH, _BETWEEN = 0.36, 0.03  # widths of a bar, and of the gap inside a pair


@dataclass(frozen=True)
class EntropyRow:
    """One line of the table: the training samples, the way of training, and the losses."""

    samples: str
    way: str
    source: MeanStd
    target: MeanStd


def entropy_table(rows: Sequence[EntropyRow], *, title: str | None = None) -> Table:
    """Return the rows as a table for the terminal.

    >>> rows = [EntropyRow("low entropy", "retrain", MeanStd(0.5), MeanStd(0.8, 0.1))]
    >>> entropy_table(rows).row_count
    1
    """
    table = Table(title=title)
    for name in ("trained on", "how"):
        table.add_column(name)
    for name in ("source loss", "target loss"):
        table.add_column(name, justify="right")
    for number, row in enumerate(rows):
        last = number + 1 < len(rows) and rows[number + 1].way != row.way
        table.add_row(row.samples, row.way, _text(row.source), _text(row.target), end_section=last)
    return table


def _text(figure: MeanStd) -> str:
    spread = "" if figure.deviation is None else f" ± {figure.deviation:.3f}"
    return f"{figure.mean:.3f}{spread}"


def draw_entropy_sets(rows: Sequence[EntropyRow], path: Path) -> None:
    """Draw rows as bars into a .png, .svg or .pdf file: one panel per way of training.

    A single model is drawn as horizontal lines.
    """
    panels = grouped(rows, lambda row: row.way)
    levels = [row for group in panels.values() if len(group) == 1 for row in group]
    shown = {way: group for way, group in panels.items() if len(group) > 1}
    figure = new_figure(4.6 * max(1, len(shown)), 3.6)
    grid = figure.subplots(1, max(1, len(shown)), squeeze=False, sharey=True)[0]
    for axes, (way, group) in zip(grid, shown.items(), strict=False):
        _draw_bars(axes, way, group)
        _draw_levels(axes, levels)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
        fontsize=9,
    )
    save_figure(figure, path)


def _draw_bars(axes: Any, way: str, rows: Sequence[EntropyRow]) -> None:
    soften(axes)
    axes.set_axisbelow(True)
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.8)
    places = np.arange(len(rows))
    half = (_WIDTH + _BETWEEN) / 2
    for name, offset, colour, figures in (
        ("on the source", -half, COLOURS[0], [row.source for row in rows]),
        ("on the target", half, COLOURS[1], [row.target for row in rows]),
    ):
        bars = axes.bar(
            places + offset,
            [figure.mean for figure in figures],
            _WIDTH,
            yerr=_spread(figures),
            color=colour,
            error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 2},
            label=f"loss {name}",
        )
        axes.bar_label(bars, fmt="%.2f", fontsize=8, color=INK, padding=2)
    axes.set_xticks(places, [row.samples for row in rows], fontsize=9, color=INK)
    axes.set_title(way.capitalize(), fontsize=10, color=INK, loc="left")
    axes.set_ylabel("loss (cross-entropy)", fontsize=9, color=FAINT)
    axes.margins(y=0.14)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _spread(figures: Sequence[MeanStd]) -> list[float] | None:
    """Return deviations, or nothing if there is one model of each kind."""
    spread = [figure.deviation or 0.0 for figure in figures]
    return spread if any(spread) else None


def _draw_levels(axes: Any, rows: Sequence[EntropyRow]) -> None:
    effects = import_drawing("matplotlib.patheffects")
    halo = [effects.withStroke(linewidth=3.5, foreground="white")]  # seen on bars of its colour too
    for row in rows:
        for name, figure, colour in (
            ("source", row.source, COLOURS[0]),
            ("target", row.target, COLOURS[1]),
        ):
            axes.axhline(
                figure.mean,
                color=colour,
                linestyle=(0, (4, 2)),
                linewidth=1.5,
                path_effects=halo,
                label=f"{row.samples}, on the {name}",
            )
