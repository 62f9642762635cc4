"""One JSON line per step: the only source of tables."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attakit.errors import SettingError, StateError
from attakit.nn.entropy import softmax_entropy
from attakit.records import StepResult
from attakit.report.accuracy import Accuracy, percent
from attakit.report.lines import LineFile

Extras = Callable[[StepResult], Mapping[str, Any]]

STEPS_FILE = "steps.jsonl"


class JsonLines:
    """Writes the results of a run, one flushed line per step.

    Parameters
    ----------
    path
        The file, `steps.jsonl` in the folder of a run.
    experiment, environment
        Settings and environment of the run, for the first line.
    segments, classes
        Names of the stream's segments in order, and of the classes.
    accuracy
        Counts right answers. It may be shared with other reporters; None if no true classes are
        known.
    before
        Numbers from before the first step, such as `source_accuracy`, for the first line.
    extras
        Function that returns more numbers for a step, such as `source_accuracy`.
    resume_after
        None starts a new file. A step number keeps the lines up to it and resumes after it.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import torch
    >>> from attakit.records import Batch, Prediction, Step, Training
    >>> from attakit.report.runs import read_run
    >>> path = Path(mkdtemp()) / "steps.jsonl"
    >>> lines = JsonLines(path, experiment={"seed": 1}, environment={"threads": 1})
    >>> step = Step(Prediction(torch.zeros(0, 2), torch.zeros(0, 4)))
    >>> batch = Batch(0, (), torch.zeros(0, 3))
    >>> lines.on_step(StepResult(batch, step, (), Training(), 0.1, 0, 0, float("inf")))
    >>> lines.end({"labels": 0})
    >>> lines.close()
    >>> run = read_run(path)
    >>> run.experiment, run.steps[0]["remaining"], run.is_finished
    ({'seed': 1}, None, True)
    """

    def __init__(
        self,
        path: Path,
        *,
        experiment: Mapping[str, Any],
        environment: Mapping[str, Any],
        segments: Sequence[str] = (),
        classes: Sequence[str] = (),
        accuracy: Accuracy | None = None,
        before: Mapping[str, Any] | None = None,
        extras: Extras | None = None,
        resume_after: int | None = None,
    ) -> None:
        first = {
            "experiment": experiment,
            "environment": environment,
            "segments": list(segments),
            "classes": list(classes),
            "before": before or {},
        }
        self._accuracy = accuracy if accuracy is not None else Accuracy({})
        self._extras = extras
        self._lines = LineFile(path, "run", first, resume_after=resume_after)
        written = [line["step"] for line in self._lines.kept if line["kind"] == "step"]
        if resume_after is not None and max(written, default=-1) < resume_after:
            raise StateError(
                f"JsonLines: {path} ends at step {max(written, default=-1)}, so the run cannot "
                f"resume after step {resume_after}. Delete the folder and run from the start."
            )

    def on_step(self, result: StepResult) -> None:
        self._accuracy.on_step(result)
        line = {"kind": "step", **_numbers(result), **self._right_answers()}
        extras = dict(self._extras(result)) if self._extras is not None else {}
        taken = sorted(line.keys() & extras.keys())
        if taken:
            raise SettingError(
                f"JsonLines: extras must not be named {', '.join(taken)}: every line has these."
            )
        self._lines.write({**line, **extras})

    def end(self, figures: Mapping[str, Any]) -> None:
        """Write the last line: the numbers of the whole run."""
        self._lines.write({"kind": "end", **figures})

    def close(self) -> None:
        """Do nothing: every line is complete."""

    def _right_answers(self) -> dict[str, Any]:
        correct, counted = self._accuracy.step_count
        return {
            "correct": correct,
            "counted": counted,
            "accuracy": percent((correct, counted)),
            "stream_accuracy": self._accuracy.stream,
            "segments": self._accuracy.step_segments,
        }


def _numbers(result: StepResult) -> dict[str, Any]:
    logits = result.step.prediction.logits.detach()
    return {
        "step": result.batch.step,
        "size": len(result.batch),
        "asked": result.asked,
        "received": result.received,
        "answers": dict(result.counts),
        "cost": result.cost,
        "remaining": result.remaining,
        "entropy": float(softmax_entropy(logits.float()).mean()) if len(logits) else None,
        "step_numbers": result.step.numbers,
        "training": result.training.numbers,
        "updates": result.training.updates,
        "seconds": result.seconds,
        "memory_mb": peak_memory_mb(),
    }


def peak_memory_mb() -> float | None:
    """Return the peak memory of this process in MB; None if the system does not report it."""
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # Windows has no such module
        return None
    peak = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
    return round(peak * unit / 2**20, 1)
