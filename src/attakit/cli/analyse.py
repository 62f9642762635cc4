"""`attakit analyse`: compare a run with the theory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from attakit.cli.bars import late_bar
from attakit.cli.options import Json, Quiet
from attakit.cli.output import interruptible, print_json, say
from attakit.errors import SettingError
from attakit.paper.analysis.analysis_page import write_analysis
from attakit.paper.analysis.analysis_records import Analysis, StepAnalysis
from attakit.paper.analysis.run_analysis import MAX_STEPS, analyse_run
from attakit.paper.analysis.verdicts import is_source_like, verdicts
from attakit.paper.theory.divergence import Hypotheses
from attakit.report.runs import find_runs

PAGE = "analysis.html"
_HEADS = ("step", "λ₀", "w₀", "w₀*", "d(S,U)", "d(S,D_l)", "d(S,D_h)", "d(D_l,U)")
_CAPTION = (
    "Distances d from 0 to 2, on features of the source model. S: source, U: stream so far, "
    "D_l: source-like, D_h: labelled samples."
)


def analyse(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a run, finished or not.")
    ],
    hypotheses: Annotated[
        Hypotheses, typer.Option(help="Classifier that separates two sets: linear or network.")
    ] = "linear",
    steps: Annotated[
        int, typer.Option(min=1, help="Maximum number of steps to analyse.")
    ] = MAX_STEPS,
    dimension: Annotated[
        int | None, typer.Option(min=1, help="VC dimension of the bounds.", show_default="linear")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"The page to write; by default {PAGE} in the folder."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare a run with the theory: weights, divergences and bounds."""
    run = _only_run(folder)
    page = out or run / PAGE
    with (
        interruptible("Stopped. Nothing was written."),
        late_bar("analysis", quiet=quiet or as_json) as show,
    ):
        analysis = analyse_run(
            run,
            hypotheses=hypotheses,
            max_steps=steps,
            dimension=dimension,
            progress=lambda done, total: show(done, total, "steps"),
        )
    write_analysis(analysis, page)
    if as_json:
        values = {"run": str(run), "verdicts": verdicts(analysis), **asdict(analysis)}
        print_json({**values, "page": str(page.resolve())})
    elif not quiet:
        Console().print(_table(analysis))
        for line in verdicts(analysis):
            say(line)
        say(f"Page: {page.resolve()}")


def _only_run(folder: Path) -> Path:
    runs = find_runs([folder])
    if len(runs) > 1:
        raise SettingError(
            f"{folder} holds {len(runs)} runs, but only one can be analysed. Name one, such as "
            f"{runs[0]}."
        )
    return runs[0]


def _table(analysis: Analysis) -> Table:
    state = "" if analysis.is_finished else ", not finished"
    table = Table(
        title=f"{analysis.label}{state}",
        caption=_CAPTION,
        title_justify="left",
        caption_justify="left",
        box=SIMPLE,
    )
    for head in _HEADS:
        table.add_column(head, justify="right")
    table.add_column("source-like")
    for step in analysis.steps:
        table.add_row(*_row(step), is_source_like(step.distances) or "–")
    return table


def _row(step: StepAnalysis) -> list[str]:
    apart = step.distances
    distances = (apart.source_stream, apart.source_low, apart.source_high, apart.low_stream)
    numbers = (
        *(step.low_share, step.low_weight, step.best_weight),
        *(None if distance is None else distance.value for distance in distances),
    )
    return [str(step.step), *("–" if number is None else f"{number:.2f}" for number in numbers)]
