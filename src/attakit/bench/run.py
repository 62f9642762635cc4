"""One run: build it, feed it, save it, and pick it up again where it stopped."""

from __future__ import annotations

import json
import platform
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch

from attakit import __version__
from attakit.bench.build import build_ledger, build_method, build_oracle
from attakit.bench.data import Task, build_stream, load_task
from attakit.bench.experiment import Experiment
from attakit.bench.models import source_classifier
from attakit.bench.score import post_adaptation, sample_accuracy
from attakit.engine.loop import drain, run
from attakit.errors import SettingError, StateError
from attakit.label.ledger import Ledger
from attakit.nn.weights import weights_hash
from attakit.protocols import Method, Oracle, Reporter
from attakit.records import Batch, Moment
from attakit.report.accuracy import Accuracy
from attakit.report.jsonlines import STEPS_FILE, JsonLines, peak_memory_mb
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.report.runs import read_run
from attakit.store.snapshot import load_snapshot, save_snapshot
from attakit.stream.batches import Stream

SNAPSHOT, DONE = "snapshot.pt", "done"


Observers = Callable[[Stream, Accuracy, int], Sequence[Reporter]]


class Interrupted(Exception):
    """The user stopped a run; it is saved and can be resumed."""


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
    """
    folder = experiment.report.folder
    _prepare_folder(folder, resume=resume, replace=replace)
    if resume and (folder / DONE).exists():
        finished = read_run(folder / STEPS_FILE).end
        assert finished is not None
        return finished
    if experiment.threads:
        torch.set_num_threads(experiment.threads)
    state = _build(experiment, write)
    start = _resume(state, folder) if resume else 0
    lines, reporters = _reporters(state, folder, start, resumed=resume)
    with _stoppable() as stop:
        saver = _Saver(state, folder / SNAPSHOT, experiment.report.save_every, stop)
        everyone = [*reporters, *observers(state.stream, state.accuracy, start), saver]
        batches = _until(stop, state.stream.batches(start))
        try:
            run(batches, state.method, state.oracle, state.ledger, everyone)
        finally:
            for reporter in everyone:
                reporter.close()
        if stop.is_set():
            raise Interrupted(f"Stopped. Continue with --resume; saved in {folder}.")
    drain(state.method, state.oracle, state.ledger, wait=experiment.labels.wait)
    end = _end(state)
    lines.end(end)
    (folder / SNAPSHOT).unlink(missing_ok=True)
    (folder / DONE).touch()
    return end


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


def _prepare_folder(folder: Path, *, resume: bool, replace: bool) -> None:
    if replace and not resume and (folder / STEPS_FILE).exists():
        shutil.rmtree(folder)
    if not resume and (folder / STEPS_FILE).exists():
        raise SettingError(
            f"{folder} already holds a run. Continue it with --resume, replace it with --replace, "
            f"or choose another folder with --set report.folder=…"
        )
    if resume and not (folder / STEPS_FILE).exists():
        raise StateError(f"There is no run in {folder} to resume. Start it without --resume.")
    folder.mkdir(parents=True, exist_ok=True)


def _build(experiment: Experiment, write: Callable[[str], None] | None) -> _Run:
    task = load_task(experiment.stream)
    stream = build_stream(experiment, task)
    model = source_classifier(experiment, task)
    return _Run(
        experiment=experiment,
        task=task,
        stream=stream,
        method=build_method(experiment.method, model, experiment.seed),
        oracle=build_oracle(experiment.labels, stream.truth, experiment.seed, write),
        ledger=build_ledger(experiment),
        accuracy=Accuracy(stream.truth.labels, stream.truth.segments),
        source_hash=weights_hash(model),
    )


def _resume(state: _Run, folder: Path) -> int:
    before = read_run(folder / STEPS_FILE).experiment
    now = _described(state.experiment)
    if {**before, "report": None} != {**now, "report": None}:
        changed = sorted(key for key in now if key != "report" and before.get(key) != now[key])
        raise StateError(
            f"The run in {folder} had other settings ({', '.join(changed)}). Resume it with the "
            f"settings it was started with, or start anew in another folder."
        )
    if not (folder / SNAPSHOT).exists():
        return 0
    return state.load_state_dict(load_snapshot(folder / SNAPSHOT)) + 1


def _reporters(
    state: _Run, folder: Path, start: int, *, resumed: bool
) -> tuple[JsonLines, list[Reporter]]:
    resume_after = start - 1 if resumed else None
    truth, classes = state.stream.truth, state.task.classes
    lines = JsonLines(
        folder / STEPS_FILE,
        experiment=_described(state.experiment),
        environment=environment() | {"model": state.source_hash},
        segments=list(dict.fromkeys(truth.segments.values())),
        classes=classes,
        accuracy=state.accuracy,
        extras=_source_check(state),
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


def _source_check(state: _Run) -> Callable[[Moment], Mapping[str, float]]:
    every, last = state.experiment.report.source_every, len(state.stream) - 1

    def measure(moment: Moment) -> Mapping[str, float]:
        step = moment.batch.step
        if not every or state.task.source_test is None or (step % every and step != last):
            return {}
        return {"source_accuracy": sample_accuracy(state.method, state.task.source_test)}

    return measure


def _end(state: _Run) -> dict[str, Any]:
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
        end["post_adaptation"] = post_adaptation(state.method, state.task.targets)
    return end


def _described(experiment: Experiment) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(experiment.model_dump_json())
    return described


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """Let the first Ctrl-C end the run after the current step; a second one ends it at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask_to_stop(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    previous = {number: signal.signal(number, ask_to_stop) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _until(stop: threading.Event, batches: Iterable[Batch]) -> Iterator[Batch]:
    for batch in batches:
        yield batch
        if stop.is_set():
            return
