"""One run: build it, feed it, save it, and pick it up again where it stopped."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch

from attakit import __version__
from attakit.bench.after_segment import AfterSegment
from attakit.bench.build import build_ledger, build_method, build_oracle
from attakit.bench.data import Task, build_stream, load_task
from attakit.bench.experiment import Experiment
from attakit.bench.models import Progress, source_classifier
from attakit.bench.run_folder import (
    DONE,
    SNAPSHOT,
    check_same_settings,
    clear_folder,
    describe,
    prepare_folder,
    read_end,
)
from attakit.bench.score import Scoring, post_adaptation, sample_accuracy
from attakit.bench.stopping import Interrupted, stoppable, until
from attakit.engine.loop import drain, run
from attakit.errors import StateError
from attakit.label.ledger import Ledger
from attakit.nn.devices import choose_device
from attakit.nn.weights import weights_hash
from attakit.protocols import Method, Oracle, Reporter
from attakit.records import Moment
from attakit.report.accuracy import Accuracy
from attakit.report.jsonlines import STEPS_FILE, JsonLines, peak_memory_mb
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.report.runs import read_run
from attakit.store.snapshot import load_snapshot, save_snapshot
from attakit.stream.batches import Stream

Observers = Callable[[Stream, Accuracy, int], Sequence[Reporter]]


@dataclass
class _Run:
    """The objects of one run."""

    experiment: Experiment
    task: Task
    stream: Stream
    method: Method
    oracle: Oracle
    ledger: Ledger
    accuracy: Accuracy
    source_hash: str
    seconds: float = 0.0
    updates: int = 0

    def state_dict(self, step: int) -> dict[str, Any]:
        return {
            "step": step,
            "seconds": self.seconds,
            "updates": self.updates,
            "method": self.method.state_dict(),
            "oracle": self.oracle.state_dict(),
            "ledger": self.ledger.state_dict(),
            "accuracy": self.accuracy.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        self.seconds = state["seconds"]
        self.updates = state["updates"]
        self.method.load_state_dict(state["method"])
        self.oracle.load_state_dict(state["oracle"])
        self.ledger.load_state_dict(state["ledger"])
        self.accuracy.load_state_dict(state["accuracy"])
        return int(state["step"])


class _Saver:
    """Counts, and saves the run every few steps and when it is stopped."""

    def __init__(self, state: _Run, path: Path, every: int, stop: threading.Event) -> None:
        self.state = state
        self.path = path
        self.every = every
        self.stop = stop

    def on_step(self, moment: Moment) -> None:
        self.state.seconds += moment.seconds
        self.state.updates += moment.training.updates
        step = moment.batch.step
        due = self.every and (step + 1) % self.every == 0
        if due or self.stop.is_set():
            save_snapshot(self.path, self.state.state_dict(step))

    def close(self) -> None:
        pass


def run_experiment(
    experiment: Experiment,
    *,
    resume: bool = False,
    replace: bool = False,
    observers: Observers = lambda _stream, _accuracy, _start: (),
    write: Callable[[str], None] | None = None,
    training: Progress | None = None,
    scoring: Scoring = lambda _done, _total: None,
) -> dict[str, Any]:
    """Run an experiment and return the end line of its results.

    Parameters
    ----------
    experiment
        What to run.
    resume
        Continue from the last snapshot in the experiment's folder.
    replace
        Throw away results that are already in the folder.
    observers
        Makes further reporters from the stream, the accuracy and the first step to come, for
        example a progress bar.
    write
        Where questions go when a person answers in the terminal.
    training
        Called while a source model is trained, which is done once.
    scoring
        Called with (samples done, samples in all) while whole domains are scored after the stream.
    """
    folder = experiment.report.folder
    prepare_folder(folder, resume=resume, replace=replace)
    if resume:
        check_same_settings(experiment, folder)
        if (folder / DONE).exists():
            return read_end(folder)
    if experiment.threads:
        torch.set_num_threads(experiment.threads)
    state = _build(experiment, write, training)
    if replace:
        clear_folder(folder)
    start = _resume(state, folder) if resume else 0
    lines, reporters = _reporters(state, folder, start, resumed=resume)
    extra = observers(state.stream, state.accuracy, start)
    _feed(state, folder, start, [*reporters, *extra])
    with stoppable(_stopped(folder), at_once=True):
        return _finish(state, folder, lines, scoring)


def environment() -> dict[str, str | int]:
    """What a result depends on besides its settings."""
    return {
        "attakit": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
    }


def _build(
    experiment: Experiment, write: Callable[[str], None] | None, training: Progress | None
) -> _Run:
    task = load_task(experiment.stream)
    stream = build_stream(experiment, task)
    model = source_classifier(experiment, task, training)
    return _Run(
        experiment=experiment,
        task=task,
        stream=stream,
        method=build_method(experiment.method, model, experiment.seed),
        oracle=build_oracle(
            experiment.labels, stream.truth, experiment.seed, where=task.where, write=write
        ),
        ledger=build_ledger(experiment),
        accuracy=Accuracy(stream.truth.labels, stream.truth.segments),
        source_hash=weights_hash(model),
    )


def _resume(state: _Run, folder: Path) -> int:
    """Bring a run to where it was saved; return the step that comes next."""
    if read_run(folder).environment.get("model") != state.source_hash:
        raise StateError(
            f"The run in {folder} started from another source model. Bring back the weights it "
            f"was started with, or start anew in another folder."
        )
    if not (folder / SNAPSHOT).exists():
        return 0
    device = choose_device(state.experiment.model.device)
    return state.load_state_dict(load_snapshot(folder / SNAPSHOT, device)) + 1


def _feed(state: _Run, folder: Path, start: int, reporters: Sequence[Reporter]) -> None:
    """Send the rest of the stream through the method, saving on the way."""
    asks = state.experiment.asks
    # A person who is being asked need not answer the whole batch to get away, nor answer twice.
    every = 1 if asks else state.experiment.report.save_every
    with stoppable(_stopped(folder), at_once=asks) as stop:
        everyone = [*reporters, _Saver(state, folder / SNAPSHOT, every, stop)]
        batches = until(stop, state.stream.batches(start))
        try:
            run(batches, state.method, state.oracle, state.ledger, everyone)
        finally:
            for reporter in everyone:
                reporter.close()
        if stop.is_set():
            raise Interrupted(_stopped(folder))


def _stopped(folder: Path) -> str:
    return f"Stopped. Continue with --resume; saved in {folder}."


def _reporters(
    state: _Run, folder: Path, start: int, *, resumed: bool
) -> tuple[JsonLines, list[Reporter]]:
    resume_after = start - 1 if resumed else None
    truth, classes = state.stream.truth, state.task.classes
    lines = JsonLines(
        folder / STEPS_FILE,
        experiment=describe(state.experiment),
        environment=environment() | {"model": state.source_hash},
        before={} if resumed else _before(state),
        segments=list(dict.fromkeys(truth.segments.values())),
        classes=classes,
        accuracy=state.accuracy,
        extras=_measurements(state),
        resume_after=resume_after,
    )
    reporters: list[Reporter] = [lines]
    if state.experiment.report.pictures:
        pictures = Pictures(
            folder / PICTURES_FILE,
            classes=classes,
            segments=truth.segments,
            labels=truth.labels,
            mean=state.task.mean,
            std=state.task.std,
            resume_after=resume_after,
        )
        reporters.append(pictures)
    return lines, reporters


def _after_segment(state: _Run) -> AfterSegment | None:
    if not state.experiment.report.domains_after_each:
        return None
    return AfterSegment(state.method, state.task, state.stream.truth.segments)


def _before(state: _Run) -> Mapping[str, Any]:
    check = _after_segment(state)
    return _source_before(state) if check is None else check.measure()


def _measurements(state: _Run) -> Callable[[Moment], Mapping[str, Any]]:
    source, check = _source_check(state), _after_segment(state)
    if check is None:
        return source
    return lambda moment: check(moment) or source(moment)


def _source_before(state: _Run) -> Mapping[str, float]:
    if not state.experiment.report.source_every or state.task.source_test is None:
        return {}
    return {"source_accuracy": sample_accuracy(state.method, state.task.source_test)}


def _source_check(state: _Run) -> Callable[[Moment], Mapping[str, float]]:
    every, last = state.experiment.report.source_every, len(state.stream) - 1

    def measure(moment: Moment) -> Mapping[str, float]:
        step = moment.batch.step
        if not every or state.task.source_test is None or (step % every and step != last):
            return {}
        return {"source_accuracy": sample_accuracy(state.method, state.task.source_test)}

    return measure


def _finish(state: _Run, folder: Path, lines: JsonLines, scoring: Scoring) -> dict[str, Any]:
    wait = state.experiment.labels.wait
    state.updates += drain(state.method, state.oracle, state.ledger, wait=wait).updates
    lines.end(_end(state, scoring))
    # In this order: whatever a crash leaves behind, a finished run is never run again.
    (folder / DONE).touch()
    (folder / SNAPSHOT).unlink(missing_ok=True)
    return read_end(folder)


def _end(state: _Run, scoring: Scoring) -> dict[str, Any]:
    end: dict[str, Any] = {
        "stream_accuracy": state.accuracy.stream,
        "segments": state.accuracy.segments,
        "labels": state.ledger.received,
        "asked": state.ledger.asked,
        "seconds": state.seconds,
        "updates": state.updates,
        "peak_memory_mb": peak_memory_mb(),
    }
    if state.task.source_test is not None:
        end["source_accuracy"] = sample_accuracy(state.method, state.task.source_test)
    if state.experiment.report.post_adaptation:
        end["post_adaptation"] = post_adaptation(state.method, state.task.targets, scoring)
    return end
