"""Loss surfaces over the share and the weight of source samples, with their low points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attakit.errors import SettingError
from attakit.report.canvas import EMPTY, FAINT, INK, import_drawing, new_figure, save_figure, soften

_LINE, _LOW, _LOWEST = "#ff8c1a", "#e0193c", "#19d219"
_BRIGHTEST = 85  # percent of the losses that the colours distinguish; few are far above the rest
_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_PANEL = (4.5, 4.1)  # inches
_COLUMNS = 3


@dataclass(frozen=True)
class Lowest:
    """A low point of a surface."""

    share: float  # λ₀
    weight: float  # w₀
    loss: float


@dataclass(frozen=True, eq=False)
class LossSurface:
    """Losses of models trained with shares λ₀ and weights w₀, both ascending.

    Examples
    --------
    >>> losses = np.array([[1.0, 3.0, 5.0], [4.0, 2.0, 3.0], [5.0, 4.0, 3.0]])
    >>> surface = LossSurface("loss", (0.25, 0.5, 0.75), (0.25, 0.5, 0.75), losses)
    >>> surface.lowest()
    Lowest(share=0.25, weight=0.25, loss=1.0)
    >>> [low.weight for low in surface.lowest_per_share()]
    [0.25, 0.5, 0.75]
    """

    title: str
    shares: tuple[float, ...]
    weights: tuple[float, ...]
    losses: NDArray[np.float64]  # (shares, weights); NaN if there is no model

    def lowest(self) -> Lowest:
        """Return the lowest point of all."""
        row, column = np.unravel_index(np.nanargmin(self.losses), self.losses.shape)
        return self._point(int(row), int(column))

    def lowest_per_share(self) -> list[Lowest]:
        """Return the lowest point for each λ₀ that leaves a choice of w₀."""
        rows = np.flatnonzero(np.isfinite(self.losses).sum(axis=1) > 1)
        return [self._point(int(row), int(np.nanargmin(self.losses[row]))) for row in rows]

    def mean_shift(self) -> float:
        """Return the mean distance of the lowest points above the line w₀ = λ₀."""
        shifts = [low.weight - low.share for low in self.lowest_per_share()]
        return float(np.mean(shifts)) if shifts else float("nan")

    def _point(self, row: int, column: int) -> Lowest:
        return Lowest(self.shares[row], self.weights[column], float(self.losses[row, column]))


def draw_surfaces(surfaces: Sequence[LossSurface], path: Path) -> None:
    """Draw surfaces next to each other, each with its own colours, into an image file."""
    if not surfaces:
        raise SettingError("draw_surfaces: no surfaces given. Name at least one.")
    columns = min(_COLUMNS, len(surfaces))
    rows = -(-len(surfaces) // columns)
    figure = new_figure(_PANEL[0] * columns, _PANEL[1] * rows + 0.35)
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes, surface in zip(panels, surfaces, strict=False):
        _draw_surface(figure, axes, surface)
    free = list(panels[len(surfaces) :])
    for axes in free:
        axes.set_axis_off()
    _draw_legend(figure, panels[0], free)
    save_figure(figure, path)


def _draw_surface(figure: Any, axes: Any, surface: LossSurface) -> None:
    if not np.isfinite(surface.losses).any():
        raise SettingError(
            f"{surface.title}: no cell could be trained, because the data set has too few samples "
            "for it. Train on fewer samples, or use more points."
        )
    soften(axes)
    axes.set_facecolor(EMPTY)
    x, y = _edges(surface.shares), _edges(surface.weights)
    colours = _draw_losses(axes, surface, x, y)
    bar = figure.colorbar(colours, ax=axes, extend="max", shrink=0.82, pad=0.02, aspect=26)
    bar.ax.tick_params(colors=FAINT, labelsize=8, length=0)
    bar.outline.set_visible(False)
    _mark(axes, surface)
    axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xticks=_TICKS, yticks=_TICKS, aspect="equal")
    axes.set_title(_two_lines(surface.title), fontsize=10, color=INK, loc="left")
    axes.set_xlabel("λ₀, share of source samples", fontsize=9, color=FAINT)
    axes.set_ylabel("w₀, weight of their loss", fontsize=9, color=FAINT)


def _draw_losses(axes: Any, surface: LossSurface, x: Any, y: Any) -> Any:
    losses = np.ma.masked_invalid(surface.losses.T)
    known = losses.compressed()
    top = float(np.percentile(known, _BRIGHTEST))
    low = float(known.min())
    limits = {"vmin": low, "vmax": top if top > low else low + 1.0}
    return axes.pcolormesh(
        x, y, losses, cmap="viridis", edgecolors="#ffffff22", linewidth=0.5, **limits
    )


def _mark(axes: Any, surface: LossSurface) -> None:
    effects = import_drawing("matplotlib.patheffects")
    halo = [effects.withStroke(linewidth=3, foreground="#00000055")]
    axes.plot([0, 1], [0, 1], color=_LINE, linewidth=2, label="w₀ = λ₀", path_effects=halo)
    lows = surface.lowest_per_share()
    axes.scatter(
        [low.share for low in lows],
        [low.weight for low in lows],
        s=42,
        color=_LOW,
        edgecolors="white",
        linewidths=0.9,
        zorder=3,
        label="lowest for its λ₀",
    )
    best = surface.lowest()
    axes.scatter(
        [best.share],
        [best.weight],
        s=110,
        color=_LOWEST,
        marker="X",
        edgecolors="#0b3d0b",
        linewidths=1,
        zorder=4,
        label="lowest of all",
        clip_on=False,
    )


def _draw_legend(figure: Any, axes: Any, free: Sequence[Any]) -> None:
    """Draw the legend in a free place, or below the surfaces."""
    handles, labels = axes.get_legend_handles_labels()
    patches = import_drawing("matplotlib.patches")
    handles.append(patches.Patch(facecolor=EMPTY, edgecolor="#cccccc"))
    labels.append("no model: too few samples")
    if free:
        free[0].legend(handles, labels, loc="center", frameon=False, fontsize=10, labelspacing=1)
    else:
        where = {"loc": "outside lower center", "ncols": len(handles), "fontsize": 8}
        figure.legend(handles, labels, frameon=False, columnspacing=1.0, handletextpad=0.4, **where)


def _two_lines(title: str) -> str:
    """Split a title at its comma into two lines."""
    first, comma, rest = title.partition(", ")
    return f"{first}\n{rest}" if comma else title


def _edges(centres: Sequence[float]) -> NDArray[np.float64]:
    """Return the borders between cells, half-way between centres.

    >>> _edges([0.0, 1.0]).tolist()
    [-0.5, 0.5, 1.5]
    """
    middle = (np.asarray(centres[1:]) + np.asarray(centres[:-1])) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])
