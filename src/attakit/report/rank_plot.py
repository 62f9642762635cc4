"""A critical-difference diagram: average ranks on a line, joined if they hardly differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attakit.report.canvas import FAINT, INK, new_figure, save_figure
from attakit.report.leaderboard import Ranking

_WIDTH, _ROW = 8.6, 0.26  # inches


def cliques(ranking: Ranking) -> list[tuple[float, float]]:
    """Return the longest groups of neighbours with differences below the critical one.

    Each group is given by its lowest and highest rank. A method that differs clearly from all
    others is in no group.

    >>> cliques(Ranking({"a": 1.0, "b": 1.5, "c": 4.0}, contests=9))
    [(1.0, 1.5)]
    """
    ranks = list(ranking.ranks.values())
    reach = ranking.critical_difference
    groups = [(low, max(rank for rank in ranks if rank - low < reach)) for low in ranks]
    return [
        group
        for number, group in enumerate(groups)
        if group[1] > group[0] and all(before[1] < group[1] for before in groups[:number])
    ]


def draw_ranks(ranking: Ranking, path: Path) -> None:
    """Draw the ranking into a file. Its ending sets the format: .png, .svg or .pdf."""
    names = list(ranking.ranks)
    half = (len(names) + 1) // 2
    joined = cliques(ranking)
    height = 1.0 + _ROW * (half + len(joined))
    figure = new_figure(_WIDTH, height)
    axes = figure.subplots()
    axes.set_axis_off()
    _draw_scale(axes, len(names), ranking.critical_difference)
    for level, (low, high) in enumerate(joined):
        depth = -0.55 - 0.45 * level
        axes.plot([low - 0.04, high + 0.04], [depth, depth], color=INK, linewidth=3.2)
    floor = -0.55 - 0.45 * len(joined)
    for place, (name, rank) in enumerate(ranking.ranks.items()):
        left = place < half
        row = floor - (place if left else len(names) - 1 - place) * 0.8
        _draw_name(axes, f"{name} ({rank:.2f})", rank, row, len(names), left=left)
    axes.set_xlim(-0.4 - 0.12 * len(names), len(names) * 1.12 + 1.4)
    save_figure(figure, path)


def _draw_scale(axes: Any, methods: int, reach: float) -> None:
    axes.plot([1, methods], [0, 0], color=FAINT, linewidth=1)
    for rank in range(1, methods + 1):
        axes.plot([rank, rank], [0, 0.18], color=FAINT, linewidth=1)
        axes.annotate(str(rank), (rank, 0.28), ha="center", va="bottom", fontsize=8, color=FAINT)
    axes.plot([1, 1 + reach], [1.35, 1.35], color=INK, linewidth=1.4)
    text = f"critical difference {reach:.2f}"
    axes.annotate(text, (1 + reach / 2, 1.45), ha="center", va="bottom", fontsize=8, color=INK)


def _draw_name(axes: Any, text: str, rank: float, row: float, methods: int, *, left: bool) -> None:
    """Draw a name at the side, and a line from it up to its rank."""
    edge = 0.4 if left else methods + 0.6
    axes.plot([rank, rank, edge], [0, row, row], color=FAINT, linewidth=0.9)
    axes.annotate(
        text,
        (edge, row),
        xytext=(-4 if left else 4, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=9,
        color=INK,
    )
