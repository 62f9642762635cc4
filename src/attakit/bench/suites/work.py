"""What a worker does with a cell, in another process or on another machine."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from attakit.bench.run import RunCallbacks, run_experiment
from attakit.bench.run_folder import has_begun, has_run
from attakit.errors import DoesNotApply
from attakit.messages import explain, is_user_error
from attakit.processes.interrupt import Interrupted
from attakit.records import StepResult
from attakit.settings.experiment import Experiment
from attakit.stream.batches import Stream

CellState = Literal["finished", "inapplicable", "failed", "stopped", "lost"]


@dataclass(frozen=True)
class Job:
    """A cell that is ready to run."""

    cell: str  # its name
    experiment: Experiment
    restart: bool = False  # delete what is in the folder, instead of resuming it
    folder: Path | None = None  # for results, instead of the experiment's folder
    weights: Path | None = None  # file of the source model, instead of the experiment's


@dataclass(frozen=True)
class CellResult:
    """The result of a cell. "lost": its process was killed; "inapplicable": it makes no sense."""

    result: CellState
    message: str = ""
    details: str = ""
    end: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CellProgress:
    """The progress of a running cell."""

    cell: str
    done: int
    total: int
    note: str = ""


@dataclass(frozen=True)
class CellEnd:
    """A cell has ended."""

    cell: str
    outcome: CellResult


CellEvent = CellProgress | CellEnd
CHECKING, SCORING = BETWEEN_STEPS = ("checking", "scoring")  # work that is not a step of a run
CellCallback = Callable[[CellProgress], None]


class Executor(Protocol):
    """A place that runs several jobs at once."""

    @property
    def has_room(self) -> bool:
        """True if another job can start."""

    def start(self, job: Job) -> None: ...

    def wait(self, seconds: float) -> Sequence[CellEvent]:
        """Return events as soon as there are any, or nothing after the timeout."""

    def stop(self) -> None:
        """Ask every job to save and stop. Their end is reported later by `wait`."""


def run_cell(job: Job, on_progress: CellCallback) -> dict[str, Any]:
    """Run one cell, from its start or from where it stopped; return its end line.

    The only place that knows the kinds of runs.
    """
    folder = job.folder or job.experiment.report.folder
    resumes = has_begun(folder) and not job.restart
    return run_experiment(
        job.experiment,
        resume=resumes,
        replace=has_run(folder) and not resumes,
        folder=job.folder,
        weights=job.weights,
        callbacks=RunCallbacks(
            observers=lambda stream, _, start: [_Steps(job.cell, stream, start, on_progress)],
            checking=lambda done, total: on_progress(CellProgress(job.cell, done, total, CHECKING)),
            scoring=lambda done, total: on_progress(CellProgress(job.cell, done, total, SCORING)),
        ),
    )


def do_job(job: Job, on_progress: CellCallback) -> CellResult:
    """Run one cell, and catch anything that it raises."""
    try:
        return CellResult("finished", end=run_cell(job, on_progress))
    except (Interrupted, KeyboardInterrupt):
        return CellResult("stopped")
    except DoesNotApply as error:
        return CellResult("inapplicable", explain(error))
    except Exception as error:  # a bug in one method must not stop the others
        return failure(error)


def failure(error: Exception) -> CellResult:
    """Return the outcome of a failed cell, with a traceback if it may be a bug."""
    if is_user_error(error):
        return CellResult("failed", explain(error))
    return CellResult("failed", explain(error), "".join(traceback.format_exception(error)))


class _Steps:
    """Reports the progress of a run."""

    def __init__(self, cell: str, stream: Stream, start: int, on_progress: CellCallback) -> None:
        self.cell = cell
        self.total = len(stream)
        self.on_progress = on_progress
        on_progress(CellProgress(cell, start, self.total))

    def on_step(self, step_result: StepResult) -> None:
        note = f"{step_result.received} labels" if step_result.received else ""
        self.on_progress(CellProgress(self.cell, step_result.batch.step + 1, self.total, note))

    def close(self) -> None:
        pass
