"""Run the cells of a suite: skip finished ones, resume interrupted ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from attakit.bench.matching import match_labels
from attakit.bench.run_folder import describe, has_begun, read_end
from attakit.bench.suites.cells import FAILED, Cell, cell_state, differences
from attakit.bench.suites.sources import Source
from attakit.bench.suites.work import CellEnd, CellEvent, CellResult, Executor, Job, failure
from attakit.errors import StateError, StreamError
from attakit.report.fairness import check_fairness
from attakit.report.label_gain import label_gain
from attakit.report.runs import INAPPLICABLE_FILE, RunRecord, read_run
from attakit.settings.suite import Suite

End = Literal["finished", "skipped", "inapplicable", "failed", "stopped"]
_PAUSE = 0.2  # seconds between checks for a stop request
CHANCES = 2  # a cell whose process is killed from outside gets a second chance
_SHOWN = 3
_FIGURES = (
    "stream_accuracy",
    "source_accuracy",
    "labels",
    "seconds",
    "setup_seconds",
    "peak_memory_mb",
)


class Grid:
    """The cells of a suite, and their progress.

    Parameters
    ----------
    cells
        The cells to run. The partner of a matched cell must be among them.
    sources
        The source model of each cell, by the cell's name. A cell without one fails.
    threads
        CPU threads of a cell that does not set a number and was not started with one.
    restart
        Restart cells whose settings have changed, instead of refusing.

    Examples
    --------
    >>> Grid([], {}).outcomes
    {}
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        sources: Mapping[str, Source],
        *,
        threads: int = 1,
        restart: bool = False,
    ) -> None:
        self.cells = {cell.name: cell for cell in cells}
        self.sources = sources
        self.threads = threads
        self.restart = restart
        self.outcomes: dict[str, tuple[End, CellResult]] = {}
        self._chances = dict.fromkeys(self.cells, CHANCES)
        self._running: set[str] = set()
        changed = [cell for cell in cells if self._state(cell) == "changed"]
        if changed and not restart:
            raise self._refusal(changed)
        self._waiting = self._plan()

    def run(
        self,
        executor: Executor,
        *,
        callbacks: Callable[[CellEvent], None] = lambda _event: None,
        stop: threading.Event | None = None,
    ) -> None:
        """Run all cells; when `stop` is set, let the running ones save and stop."""
        stopping = False
        while self._running or (self._waiting and not stopping):
            if stop is not None and stop.is_set() and not stopping:
                stopping = True
                executor.stop()
            if not stopping:
                self._start_ready(executor, callbacks)
            for event in executor.wait(_PAUSE):
                self._receive(event, callbacks)

    def _start_ready(self, executor: Executor, callbacks: Callable[[CellEvent], None]) -> None:
        """Start what can be started, and finish cells that need no run or cannot have one."""
        for name in list(self._waiting):
            partner = self.cells[name].match
            if partner is not None and partner not in self.outcomes:
                continue
            if not executor.has_room:
                return
            try:
                job = self._next(self.cells[name])
            except Exception as error:  # one broken cell must not stop the others
                self._end(name, "failed", failure(error), callbacks)
                continue
            if isinstance(job, Job):
                self._waiting.remove(name)
                self._running.add(name)
                _forget_failure(self.cells[name])
                executor.start(job)
            else:
                self._end(name, _end_without_job(job), job, callbacks)

    def _next(self, cell: Cell) -> Job | CellResult:
        """Return the job that a cell is ready for, or its result without one."""
        source = self.sources[cell.name]
        if isinstance(source, StreamError):
            is_finished = self._state(cell) == "finished"
            return _finished(cell) if is_finished else CellResult("failed", str(source))
        if cell.match is not None and self.outcomes[cell.match][0] not in ("finished", "skipped"):
            return _unmatched(cell.match, self.outcomes[cell.match][0])
        cell = self._matched(cell)
        state = self._state(cell)
        if state == "finished":
            return _finished(cell)
        if state == "changed" and not self.restart:
            return CellResult("failed", str(self._refusal([cell])))
        return self._job(cell, restart=state == "changed")

    def _receive(self, event: CellEvent, callbacks: Callable[[CellEvent], None]) -> None:
        if not isinstance(event, CellEnd):
            callbacks(event)
            return
        name, outcome = event.cell, event.outcome
        self._running.discard(name)
        if outcome.result == "lost":
            self._chances[name] -= 1
            if self._chances[name]:
                self._waiting.insert(0, name)
                return
        end: End = "failed" if outcome.result == "lost" else outcome.result
        self._end(name, end, outcome, callbacks)

    def _end(
        self, name: str, end: End, outcome: CellResult, callbacks: Callable[[CellEvent], None]
    ) -> None:
        if name in self._waiting:
            self._waiting.remove(name)
        self.outcomes[name] = (end, outcome)
        if end == "failed":
            _write_failure(self.cells[name], outcome)
        elif end == "inapplicable":
            _write_inapplicable(self.cells[name], outcome)
        callbacks(CellEnd(name, outcome))

    def _plan(self) -> list[str]:
        """Return the starting order: partners first, then cells that ask and take long."""
        partners = {cell.match for cell in self.cells.values()}
        return sorted(
            self.cells,
            key=lambda name: (name not in partners, self.cells[name].budget is None),
        )

    def _matched(self, cell: Cell) -> Cell:
        """Return the cell with the same number of labels as its partner."""
        if cell.match is None:
            return cell
        labels = int(read_end(self.cells[cell.match].folder)["labels"])
        return replace(cell, experiment=match_labels(cell.experiment, labels), match=None)

    def _job(self, cell: Cell, *, restart: bool) -> Job:
        threads = cell.experiment.threads or self.threads
        if has_begun(cell.folder) and not restart:
            # Another number of threads would round differently: continue with the same number.
            threads = read_run(cell.folder).experiment.get("threads", threads)
        experiment = cell.experiment.model_copy(update={"threads": threads})
        return Job(cell.name, experiment, restart=restart)

    def _state(self, cell: Cell) -> str:
        return cell_state(cell, self._fingerprint(cell))

    def _fingerprint(self, cell: Cell) -> str | None:
        source = self.sources[cell.name]
        return None if isinstance(source, StreamError) else source.fingerprint

    def _refusal(self, changed: Sequence[Cell]) -> StateError:
        names = [
            f"{cell.name} ({', '.join(differences(cell, self._fingerprint(cell)))})"
            for cell in changed[:_SHOWN]
        ]
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        return StateError(
            f"Some cells were run with other settings: {', '.join(names)}{more}. Run them again "
            "with --replace, or use another folder for the suite."
        )


def with_partners(chosen: Sequence[Cell], cells: Sequence[Cell]) -> list[Cell]:
    """Return the chosen cells and their partners, in the order of `cells`."""
    names = {cell.name for cell in chosen} | {cell.match for cell in chosen}
    return [cell for cell in cells if cell.name in names]


def _finished(cell: Cell) -> CellResult:
    return CellResult("finished", end=read_end(cell.folder))


def _end_without_job(outcome: CellResult) -> End:
    if outcome.result == "inapplicable":
        return "inapplicable"
    return "skipped" if outcome.result == "finished" else "failed"


def _unmatched(partner: str, end: End) -> CellResult:
    matched = f"Not run: its labels are matched to {partner}, which"
    if end == "inapplicable":
        return CellResult("inapplicable", f"{matched} does not apply.")
    return CellResult("failed", f"{matched} failed.")


def _write_failure(cell: Cell, outcome: CellResult) -> None:
    text = "\n".join(part for part in (outcome.message, outcome.details) if part)
    with suppress(OSError):  # the folder itself may be the problem
        cell.folder.mkdir(parents=True, exist_ok=True)
        (cell.folder / FAILED).write_text(text + "\n", encoding="utf-8")


def _write_inapplicable(cell: Cell, outcome: CellResult) -> None:
    facts = {"experiment": describe(cell.experiment), "message": outcome.message}
    cell.folder.mkdir(parents=True, exist_ok=True)
    (cell.folder / INAPPLICABLE_FILE).write_text(json.dumps(facts) + "\n", encoding="utf-8")


def _forget_failure(cell: Cell) -> None:
    with suppress(OSError):
        for name in (FAILED, INAPPLICABLE_FILE):
            (cell.folder / name).unlink(missing_ok=True)


def summarise_grid(
    suite: Suite, cells: Sequence[Cell], outcomes: Mapping[str, tuple[End, CellResult]]
) -> dict[str, Any]:
    """Summarise a finished suite: every cell, and whether they are comparable."""
    done = [cell for cell in cells if outcomes[cell.name][0] in ("finished", "skipped")]
    runs = {cell.name: read_run(cell.folder) for cell in done}
    fairness = check_fairness(
        [(cell.stream, runs[cell.name]) for cell in done],
        own_batch_sizes=suite.protocol == "paper",
    )
    ends = [end for end, _ in outcomes.values()]
    return {
        "suite": suite.name,
        "folder": str(suite.results),
        "layout": suite.layout,
        "protocol": suite.protocol,
        **{end: ends.count(end) for end in ("finished", "skipped", "inapplicable", "failed")},
        "fairness": {"shared": list(fairness.shared), "warnings": list(fairness.warnings)},
        "label_gain": {
            stream: label_gain([runs[cell.name] for cell in done if cell.stream == stream])
            for stream in dict.fromkeys(cell.stream for cell in done)
        },
        "cells": [_line(cell, outcomes[cell.name], runs.get(cell.name)) for cell in cells],
    }


def _line(cell: Cell, outcome: tuple[End, CellResult], run: RunRecord | None) -> dict[str, Any]:
    line: dict[str, Any] = {**cell.description, "state": outcome[0]}
    if outcome[1].message:
        line["message"] = outcome[1].message
    if run is None or run.end is None:
        return line
    return {
        **line,
        "model": run.environment.get("model"),
        "stream_order": run.environment.get("stream"),
        "batch_size": run.experiment["stream"]["batch_size"],
        "threads": run.environment.get("threads"),
        **{name: run.end.get(name) for name in _FIGURES},
    }
