"""Pictures of incremental clustering: clusters on the left, chosen anchors on the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attakit.errors import SettingError
from attakit.report.canvas import EMPTY, FAINT, INK, MANY_COLOURS, RULE, new_figure, save_figure

_PANEL = (4.6, 3.5)  # inches
_SMALLEST, _PER_WEIGHT = 13.0, 9.0  # points², of a sample and of each further sample it represents
_NEW, _KNOWN = "#e0193c", "#222222"


@dataclass(frozen=True, eq=False)
class ClusterStep:
    """One step of incremental clustering in the plane. Its points are anchors and new samples."""

    domain: str  # domain of the new samples
    places: NDArray[np.float64]  # (points, 2)
    weights: NDArray[np.float64]  # before the step: number of samples that each point represents
    new_weights: NDArray[np.float64]  # after it; only those of anchors are shown
    clusters: NDArray[np.int64]
    is_anchor: NDArray[np.bool_]  # before the step
    is_chosen: NDArray[np.bool_]  # to become an anchor

    @property
    def cluster_count(self) -> int:
        return len(np.unique(self.clusters))


def draw_clustering(steps: Sequence[ClusterStep], path: Path) -> None:
    """Draw the steps, the initial one first, in rows into a .png, .svg or .pdf file."""
    if not steps:
        raise SettingError("draw_clustering: no steps given. Give at least one.")
    figure = new_figure(2 * _PANEL[0], _PANEL[1] * len(steps) + 0.3)
    grid = figure.subplots(len(steps), 2, squeeze=False)
    limits = _limits(steps)
    for number, (step, (left, right)) in enumerate(zip(steps, grid, strict=True)):
        name = "Initial step" if number == 0 else f"Step {number}"
        known, chosen = int(step.is_anchor.sum()), int(step.is_chosen.sum())
        _prepare(left, limits, f"{name}, {step.domain}: {step.cluster_count} clusters")
        new = f"{chosen} new anchor{'' if chosen == 1 else 's'}"
        _prepare(right, limits, f"{new}, {known} from before" if known else new)
        _draw_clusters(left, step)
        _draw_anchors(right, step)
    _draw_legend(figure)
    save_figure(figure, path)


def _limits(steps: Sequence[ClusterStep]) -> Any:
    """Return the range of everything that any step shows, with a margin."""
    places = np.concatenate([step.places for step in steps])
    low, high = places.min(axis=0), places.max(axis=0)
    room = 0.06 * np.maximum(high - low, 1e-9)
    return low - room, high + room


def _prepare(axes: Any, limits: Any, title: str) -> None:
    axes.set(xticks=[], yticks=[], facecolor="#fbfaf7")
    axes.set_xlim(limits[0][0], limits[1][0])
    axes.set_ylim(limits[0][1], limits[1][1])
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    for spine in axes.spines.values():
        spine.set_color(RULE)


def _draw_clusters(axes: Any, step: ClusterStep) -> None:
    colours = np.array(MANY_COLOURS)[step.clusters % len(MANY_COLOURS)]
    for is_anchor, edge, width in ((False, "none", 0.0), (True, _KNOWN, 1.1)):
        rows = step.is_anchor == is_anchor
        axes.scatter(
            *step.places[rows].T,
            s=_sizes(step.weights[rows]),
            c=colours[rows],
            edgecolors=edge,
            linewidths=width,
            alpha=0.8,
            zorder=2 + is_anchor,
        )


def _draw_anchors(axes: Any, step: ClusterStep) -> None:
    passed = ~(step.is_anchor | step.is_chosen)
    axes.scatter(*step.places[passed].T, s=_SMALLEST, color="#c9ccd1", linewidths=0, zorder=1)
    for rows, colour in ((step.is_anchor, _KNOWN), (step.is_chosen, _NEW)):
        sizes = _sizes(step.new_weights[rows])
        places = step.places[rows].T
        axes.scatter(*places, s=sizes, color=colour, alpha=0.22, linewidths=0, zorder=2)
        axes.scatter(*places, s=26, color=colour, marker="x", linewidths=1.6, zorder=3)


def _sizes(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return _SMALLEST + _PER_WEIGHT * np.maximum(weights - 1, 0)


def _draw_legend(figure: Any) -> None:
    marks = (
        ("new sample, in the colour of its cluster", {"color": MANY_COLOURS[5], "marker": "o"}),
        ("anchor from before", {"color": _KNOWN, "marker": "x"}),
        ("new anchor", {"color": _NEW, "marker": "x"}),
        ("area: samples it stands for", {"color": EMPTY, "marker": "o"}),
    )
    axes = figure.axes[0]
    handles = [
        axes.scatter([], [], s=110 if mark["color"] == EMPTY else 30, edgecolors=FAINT, **mark)
        if mark["marker"] == "o"
        else axes.scatter([], [], s=30, **mark)
        for _, mark in marks
    ]
    figure.legend(
        handles,
        [name for name, _ in marks],
        loc="outside lower center",
        ncols=len(marks),
        frameon=False,
        fontsize=9,
    )
