"""The page of an analysis: charts of weights, distances and bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from attakit.files import atomic_write
from attakit.paper.analysis.analysis_records import Analysis, StepAnalysis
from attakit.paper.analysis.verdicts import is_source_like, verdicts
from attakit.paper.theory.divergence import Divergence
from attakit.report.html import embed, inline_assets

StepReader = Callable[[StepAnalysis], float | Divergence | None]

_DECIMALS = 2
CHARTS: dict[str, dict[str, StepReader]] = {
    "weights": {
        "λ₀, share of source-like samples": lambda step: step.low_share,
        "w₀, their weight": lambda step: step.low_weight,
        "w₀*, the best for the bound": lambda step: step.best_weight,
    },
    "distances": {
        "source and stream": lambda step: step.distances.source_stream,
        "source and source-like set": lambda step: step.distances.source_low,
        "source and labelled set": lambda step: step.distances.source_high,
        "source-like set and stream": lambda step: step.distances.low_stream,
    },
    "bounds": {
        "bound on the target error": lambda step: step.target_bound,
        "bound on the source error": lambda step: step.source_bound,
        "target error so far": lambda step: step.target_error,
        "source error": lambda step: step.source_error,
    },
}


def write_analysis(analysis: Analysis, path: Path) -> None:
    """Write one self-contained page about an analysis."""
    with atomic_write(path) as draft:  # so that a browser never loads half a page
        draft.write_text(render_analysis(analysis), encoding="utf-8")


def render_analysis(analysis: Analysis) -> str:
    """Render the page."""
    loader = PackageLoader("attakit.paper")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    curves = {name: _curves(analysis, readers) for name, readers in CHARTS.items()}
    # The report's script draws all charts, and looks for these names.
    data: dict[str, Any] = {
        "curves": curves,
        "bands": [],
        "best": None,
        "scene": None,
        "decimals": _DECIMALS,
    }
    return environment.get_template("analysis.html.j2").render(
        analysis=analysis,
        verdicts=verdicts(analysis),
        curves=curves,
        rows=[(step, is_source_like(step.distances)) for step in analysis.steps],
        data=embed(data),
        **inline_assets(),
    )


def _curves(analysis: Analysis, readers: dict[str, StepReader]) -> list[dict[str, Any]]:
    return [_curve(name, analysis.steps, read) for name, read in readers.items()]


def _curve(name: str, steps: tuple[StepAnalysis, ...], read: StepReader) -> dict[str, Any]:
    known = [(step.samples, value) for step in steps if (value := read(step)) is not None]
    x, values = [at for at, _ in known], [value for _, value in known]
    ranges = [value for value in values if isinstance(value, Divergence)]
    curve: dict[str, Any] = {
        "name": name,
        "x": x,
        "y": [_rounded(v.value if isinstance(v, Divergence) else v) for v in values],
    }
    if ranges:
        curve["low"] = [_rounded(value.low) for value in ranges]
        curve["high"] = [_rounded(value.high) for value in ranges]
    return curve


def _rounded(value: float) -> float:
    return round(value, _DECIMALS + 1)
