"""Plots of runs as image files, drawn with matplotlib (extra `report`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from attakit.errors import SettingError, check_choice
from attakit.report.canvas import (
    COLOURS,
    FAINT,
    INK,
    RULE,
    check_ending,
    import_drawing,
    new_figure,
    save_figure,
    soften,
)
from attakit.report.colours import colour_places
from attakit.report.leaderboard import ranking_of
from attakit.report.panels import PLOTS, Panel, PanelRows, Trace, plot_panels
from attakit.report.rank_plot import draw_ranks
from attakit.report.runs import RunRecord

_SHORT = 16  # letters of a label
_LEGEND_ROW = 0.24  # inches

PlotKind = Literal["ablation", "labels", "ranks", "seconds", "stream"]

_COLOURS = (*COLOURS, "#882255", "#44AA99", "#999933", "#332288")  # more for long lists
_MARKERS = "osD^vPX*<"
_DASHES = ((0, (5, 2)), (0, (2, 1.5)), (0, (7, 2, 1.5, 2)), (0, (1, 2)), (0, (9, 2)))
# Lines are solid until the colours repeat.
_STROKES = ("solid", *_DASHES)
_PANEL = (4.6, 3.3)  # inches


def draw_plot(runs: Sequence[RunRecord], kind: PlotKind, path: Path) -> None:
    """Draw runs into a file. Its ending sets the format: .png, .svg or .pdf.

    Parameters
    ----------
    runs
        The runs to draw.
    kind
        `ablation` (target and source accuracy of variants, over budgets or along the stream),
        `labels` or `seconds` (accuracy against cost), `stream` (accuracy around each moment of the
        stream), or `ranks` (average ranks over streams).
    path
        The file to write.
    """
    check_choice("draw_plot", "kind", kind, (*PLOTS, "ranks"))
    check_ending(path)
    if kind == "ranks":
        draw_ranks(ranking_of(runs), path)
        return
    grid = plot_panels(kind, runs)
    if all(panel.is_empty for row in grid for panel in row):
        raise SettingError(
            f"draw_plot: no run has the numbers that {kind!r} shows. Give stream runs that have "
            "made at least one step."
        )
    save_figure(_draw(grid), path)


def _draw(grid: PanelRows) -> Any:
    if max(len(row) for row in grid) == 1:  # a single column would waste the width of a page
        grid = [[row[0] for row in grid]]
    wide, high = max(len(row) for row in grid), len(grid)
    labels = list(dict.fromkeys(t.label for row in grid for panel in row for t in panel.traces))
    columns = _legend_columns(labels, wide)
    rows = -(-len(labels) // columns)
    figure = new_figure(_PANEL[0] * wide, _PANEL[1] * high + _LEGEND_ROW * (rows + 0.5))
    axes = figure.subplots(high, wide, squeeze=False)
    places = colour_places(labels)
    for row, panels in enumerate(grid):
        for column, panel in enumerate(panels):
            _draw_panel(axes[row][column], panel, places)
            if column and panel.y_title == panels[0].y_title:
                axes[row][column].set_ylabel("")
    _draw_legend(figure, axes, labels, columns)
    return figure


def _legend_columns(labels: Sequence[str], wide: int) -> int:
    """Return two columns per panel, and one more if all labels are short."""
    spare = all(len(label) <= _SHORT for label in labels)
    return max(1, min(len(labels), 2 * wide + spare))


def _draw_legend(figure: Any, axes: Any, labels: Sequence[str], columns: int) -> None:
    handles = {
        label: handle
        for each in axes.flat
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True)
    }
    shown = [label for label in labels if label in handles]
    figure.legend(
        [handles[label] for label in shown],
        shown,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )


def _draw_panel(axes: Any, panel: Panel, places: Mapping[str, int]) -> None:
    if panel.is_empty:
        axes.set_axis_off()
        return
    _draw_frame(axes, panel)
    for trace in panel.traces:
        if trace.points:
            _draw_trace(axes, trace, places[trace.label])
    if panel.log_x:
        _scale_by_powers(axes.xaxis)
    elif not panel.bands:
        axes.set_xlim(left=0)
    _name_bands(axes, panel)


def _scale_by_powers(axis: Any) -> None:
    ticks = import_drawing("matplotlib.ticker")
    axis.axes.set_xscale("log")
    axis.set_major_locator(ticks.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticks.FuncFormatter(lambda value, _place: f"{value:g}"))
    axis.set_minor_locator(ticks.NullLocator())


def _draw_frame(axes: Any, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=10, color=INK, loc="left")
    axes.set_xlabel(panel.x_title, fontsize=9, color=FAINT)
    axes.set_ylabel(panel.y_title, fontsize=9, color=FAINT)
    soften(axes)
    ticks = import_drawing("matplotlib.ticker")
    axes.yaxis.set_major_locator(ticks.MaxNLocator(6, steps=(1, 2, 5, 10)))
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.08, y=0.12)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


@dataclass(frozen=True, slots=True)
class LineStyle:
    """The style of one method: a dashed level, or a line with a marker."""

    colour: str
    marker: str
    dash: Any
    stroke: Any


def line_style(number: int) -> LineStyle:
    """Return the style of the method with a number in the legend. The first sixty differ.

    >>> line_style(0).colour == line_style(12).colour, line_style(0).dash == line_style(12).dash
    (True, False)
    """
    turn, colour = divmod(number, len(_COLOURS))
    return LineStyle(
        _COLOURS[colour],
        _MARKERS[number % len(_MARKERS)],
        _DASHES[(colour + turn) % len(_DASHES)],
        _STROKES[turn % len(_STROKES)],
    )


def _draw_trace(axes: Any, trace: Trace, number: int) -> None:
    own = line_style(number)
    if trace.level:
        height = trace.points[0].y.mean
        axes.axhline(height, color=own.colour, linestyle=own.dash, linewidth=1.5, label=trace.label)
        return
    points = sorted(trace.points, key=lambda point: point.x.mean)
    x, y = [point.x.mean for point in points], [point.y.mean for point in points]
    if not trace.marked:
        axes.plot(x, y, color=own.colour, linestyle=own.stroke, linewidth=1.8, label=trace.label)
        return
    spread = [point.y.deviation or 0.0 for point in points]
    axes.errorbar(
        x,
        y,
        yerr=spread if any(spread) else None,
        color=own.colour,
        linestyle=own.stroke,
        marker=own.marker,
        markersize=8,
        markeredgecolor="white",
        markeredgewidth=0.8,
        linewidth=1.8,
        elinewidth=1.2,
        capsize=2.5,
        label=trace.label,
    )


def _name_bands(axes: Any, panel: Panel) -> None:
    for number, band in enumerate(panel.bands):
        if number % 2:
            axes.axvspan(band.start, band.stop, color=RULE, alpha=0.35, linewidth=0, zorder=0)
        axes.annotate(
            band.name.replace("_", " "),
            ((band.start + band.stop) / 2, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, -2),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=8,
            color=FAINT,
        )
