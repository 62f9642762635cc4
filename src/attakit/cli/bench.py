"""`attakit bench`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from attakit.bench.suites.cells import Cell, expand, write_suite
from attakit.bench.suites.grid import Grid, summarise_grid, with_partners
from attakit.bench.suites.local_executor import LocalExecutor
from attakit.bench.suites.ray_executor import RayExecutor
from attakit.bench.suites.sources import Source, prepare_sources, states
from attakit.bench.suites.work import Executor
from attakit.build.sets.catalogue import listed as list_names
from attakit.cli.bars import training_bar
from attakit.cli.grid_display import GridDisplay
from attakit.cli.options import Json, Overrides, Quiet
from attakit.cli.output import interruptible, print_json, say
from attakit.errors import SettingError
from attakit.paper.tables.layouts import check_suite
from attakit.processes.interrupt import Interrupted, stoppable
from attakit.processes.threads import usable_cores
from attakit.report.comparisons import comparison
from attakit.report.console import print_table
from attakit.report.leaderboard import leaderboard_tables
from attakit.report.paired import paired_tables
from attakit.report.runs import grouped, read_run
from attakit.settings.suite import LEADERBOARD, Protocol, Suite, load_suite

SOME_FAILED = 1
STOPPED = "Stopped. Running cells are saved. Run the same command to continue."


def bench(
    suites: Annotated[list[Path], typer.Argument(metavar="SUITE.toml...", help="Suite files.")],
    override: Overrides = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            help="Batch size: the same for all methods, or each method's own, as in the paper."
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Run only cells whose name contains this.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Cells to run at the same time; by default one per core."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Run cells again whose settings have changed.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List the cells with their state and run nothing.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS]",
            help="Run the cells on a Ray cluster; without an address, on the one that Ray finds.",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run grids of methods, streams, budgets and seeds; skip finished cells."""
    plans = [_plan(path, override or [], protocol, only) for path in suites]
    if listed:
        found = [_listing(plan) for plan in plans]
        _print_listings(found, as_json=as_json)
        return
    runner = _Runner(workers, ray, restart=replace, silent=quiet or as_json)
    summaries = []
    for plan in plans:
        summary = runner.run(plan)
        summaries.append(summary)
        if not as_json:
            _print_summary(summary, plan, quiet=quiet)
    if as_json:
        print_json(summaries[0] if len(summaries) == 1 else {"suites": summaries})
    if any(summary["failed"] for summary in summaries):
        raise typer.Exit(SOME_FAILED)


@dataclass(frozen=True)
class _Plan:
    """A suite, all of its cells, and those to run."""

    suite: Suite
    everything: tuple[Cell, ...]
    cells: Sequence[Cell]


def _plan(path: Path, override: list[str], protocol: Protocol | None, only: str | None) -> _Plan:
    suite = load_suite(path, override).under(protocol)
    check_suite(suite, where=str(path))
    everything = expand(suite)
    return _Plan(suite, everything, _chosen(everything, only))


@dataclass(frozen=True)
class _Runner:
    """How the cells of a suite are run."""

    workers: int | None
    ray: str | None
    restart: bool
    silent: bool

    def run(self, plan: _Plan) -> dict[str, Any]:
        """Run what is not finished, and sum up how each cell ended."""
        with interruptible(STOPPED), training_bar(quiet=self.silent) as training:
            sources = prepare_sources(plan.cells, training)
        cores = usable_cores()
        count = self.workers or cores
        threads = 1 if self.ray is not None else max(1, cores // count)
        grid = Grid(plan.cells, sources, threads=threads, restart=self.restart)
        write_suite(plan.suite, plan.everything)
        with (
            stoppable(STOPPED) as stop,
            _executor(count, sources, ray=self.ray) as executor,
            GridDisplay(plan.suite.name, len(plan.cells), quiet=self.silent) as display,
        ):
            grid.run(executor, callbacks=display.show, stop=stop)
        ends = [end for end, _ in grid.outcomes.values()]
        if len(ends) < len(plan.cells) or "stopped" in ends:
            raise Interrupted(STOPPED)
        return summarise_grid(plan.suite, plan.cells, grid.outcomes)


def _chosen(cells: Sequence[Cell], pattern: str | None) -> list[Cell]:
    chosen = [cell for cell in cells if pattern is None or pattern in cell.name]
    if not chosen:
        raise SettingError(
            f"--only {pattern}: no cell has a name that contains this. `--list` lists the names, "
            f"for example {cells[0].name}."
        )
    return with_partners(chosen, cells)


@contextmanager
def _executor(workers: int, sources: dict[str, Source], *, ray: str | None) -> Iterator[Executor]:
    if ray is not None:
        with RayExecutor(sources, address=ray or None) as cluster:
            yield cluster
    else:
        with LocalExecutor(workers=workers) as processes:
            yield processes


def _listing(plan: _Plan) -> dict[str, Any]:
    found = states(plan.cells)
    return {"suite": plan.suite.name, "folder": str(plan.suite.results), "cells": found}


def _print_listings(found: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(found[0] if len(found) == 1 else {"suites": found})
        return
    for one in found:
        for name, state in one["cells"].items():
            say(f"{state:<12} {name}")


def _print_summary(summary: dict[str, Any], plan: _Plan, *, quiet: bool) -> None:
    if not quiet:
        _print_tables(summary, plan.suite, plan.cells)
    errors = Console(stderr=True, highlight=False)
    for failure in _failures(summary["cells"]):
        errors.print(f"[bold red]Failed:[/] {escape(failure)}", soft_wrap=True)
    for warning in summary["fairness"]["warnings"]:
        errors.print(f"[bold yellow]Warning:[/] {escape(warning)}", soft_wrap=True)


def _print_tables(summary: dict[str, Any], suite: Suite, cells: Sequence[Cell]) -> None:
    done = {line["name"] for line in summary["cells"] if line["state"] in _SHOWN}
    runs = [(cell.stream, read_run(cell.folder)) for cell in cells if cell.name in done]
    if suite.against in {run.label for _, run in runs}:
        for table in paired_tables([run for _, run in runs], str(suite.against)):
            print_table(table)
    elif suite.layout == LEADERBOARD and len({run.label for _, run in runs}) > 1:
        for table in leaderboard_tables([run for _, run in runs]):
            print_table(table)
    else:
        for stream, pairs in grouped(runs, lambda pair: pair[0]).items():
            print_table(comparison(stream, [run for _, run in pairs]).table)
    if summary["fairness"]["shared"]:
        say("Fair: " + "; ".join(summary["fairness"]["shared"]) + ".")
    counts = ", ".join(f"{summary[end]} {label}" for end, label in _COUNTS.items() if summary[end])
    say(f"Cells: {counts}. Results: {summary['folder']}")


_NAMED = 3  # cells named per failure; the others are counted
_SHOWN = ("finished", "skipped", "inapplicable")
_COUNTS = {
    "finished": "run",
    "skipped": "finished before",
    "inapplicable": "not applicable",
    "failed": "failed",
}


def _failures(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Each error message once, with the names of the cells that failed with it."""
    names: dict[str, list[str]] = {}
    for line in lines:
        if line["state"] == "failed":
            names.setdefault(line["message"], []).append(line["name"])
    return [f"{list_names(cells, most=_NAMED)}: {message}" for message, cells in names.items()]
