"""One run of a stream or a pool: build it, run it, save it, and resume it."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from attakit import __version__
from attakit.bench.matching import check_matched
from attakit.bench.measure import measure_before, measure_end, measure_steps
from attakit.bench.recorded import build_features, build_pictures
from attakit.bench.run_folder import (
    DONE,
    MODEL_FILE,
    SNAPSHOT,
    check_same_model,
    check_same_settings,
    clear_folder,
    describe,
    has_snapshot,
    mark_done,
    prepare_folder,
    read_end,
    stopped,
)
from attakit.bench.run_state import RunState, Saver
from attakit.build.checks import check_experiment
from attakit.build.data import build_stream, load_task
from attakit.build.exportable import adapted_model, describe_model
from attakit.build.methods import build_method, build_pool, build_rate
from attakit.build.models import TrainingCallback, source_classifier
from attakit.build.oracles import build_ledger, build_oracle
from attakit.build.task import ProgressCallback, Task, no_progress
from attakit.engine.buffer import Buffer
from attakit.engine.loop import drain, run
from attakit.nn.classifier import Classifier
from attakit.nn.devices import choose_device
from attakit.nn.export import export_model
from attakit.nn.weights import weights_hash
from attakit.processes.interrupt import Interrupted, stoppable, until
from attakit.processes.threads import using_threads
from attakit.protocols import Method, Reporter
from attakit.report.accuracy import Accuracy
from attakit.report.collapse import CollapseWatch, GrowthWatch
from attakit.report.jsonlines import STEPS_FILE, JsonLines
from attakit.report.share_watch import ShareWatch
from attakit.settings.experiment import Experiment
from attakit.store.tensor_file import load_state
from attakit.stream.batches import Rounds, Stream

Observers = Callable[[Any, Accuracy, int], Sequence[Reporter]]


@dataclass(frozen=True, kw_only=True)
class RunCallbacks:
    """Functions that a run calls; by default none.

    Parameters
    ----------
    observers
        Makes more reporters, for example a progress bar, from the stream, the accuracy and the
        first step.
    write
        Where to print questions if a person answers in the terminal.
    training
        Called with (update, numbers) during training of a source model.
    checking
        Called with (files done, files in total) during the check for corrupt files.
    scoring
        Called with (samples done, samples in total) during scoring before and after the stream.
    """

    observers: Observers = lambda _stream, _accuracy, _start: ()
    write: Callable[[str], None] | None = None
    training: TrainingCallback | None = None
    checking: ProgressCallback = no_progress
    scoring: ProgressCallback = no_progress


def run_experiment(
    experiment: Experiment,
    *,
    resume: bool = False,
    replace: bool = False,
    folder: Path | None = None,
    weights: Path | None = None,
    callbacks: RunCallbacks | None = None,
) -> dict[str, Any]:
    """Run an experiment and return the end line of its results.

    Parameters
    ----------
    experiment
        The experiment to run.
    resume
        Continue from the last snapshot in the experiment's folder.
    replace
        Delete results that are already in the folder.
    folder, weights
        Where results go and where the source model is, if a run takes place away from the folder
        and the files in the experiment. The recorded settings are those of the experiment.
    callbacks
        Functions to call during the run.
    """
    folder = folder or experiment.report.folder
    prepare_folder(folder, resume=resume, replace=replace)
    if resume:
        check_same_settings(experiment, folder)
        if (folder / DONE).exists():
            return read_end(folder)
    with using_threads(experiment.threads):
        return _run(
            experiment,
            folder,
            callbacks or RunCallbacks(),
            weights=weights,
            resume=resume,
            replace=replace,
        )


def _run(
    experiment: Experiment,
    folder: Path,
    callbacks: RunCallbacks,
    *,
    weights: Path | None,
    resume: bool,
    replace: bool,
) -> dict[str, Any]:
    state = _build(experiment, weights, callbacks)
    if replace:
        clear_folder(folder)
    start = _resume(state, folder) if resume else 0
    resume_after = start - 1 if resume else None
    lines = _lines(state, folder, callbacks, resume_after=resume_after)
    kept = [
        *build_pictures(experiment, state.task, state.stream.truth, folder, resume_after),
        *build_features(state, folder, resume_after),
        *_watches(state),
    ]
    extra = callbacks.observers(state.stream, state.accuracy, start)
    _feed(state, folder, start, [lines, *kept, *extra])
    with stoppable(stopped(folder), at_once=True):
        return _finish(state, folder, lines, callbacks.scoring)


def _watches(state: RunState) -> Iterator[Reporter]:
    """Yield reporters that warn if a method ruins its model."""
    who = state.experiment.label
    yield CollapseWatch(who, state.task.classes, state.accuracy)
    yield ShareWatch(who)
    model = getattr(state.method, "model", None)  # attakit's own methods have one, and most others
    if isinstance(model, nn.Module):
        yield GrowthWatch(who, model)


def environment() -> dict[str, str | int]:
    """Return what a result depends on, apart from its settings."""
    return {
        "attakit": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "scikit-learn": version("scikit-learn"),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
    }


def saved_method(experiment: Experiment, folder: Path) -> tuple[Method, Task]:
    """Return the last saved method of a stopped run, and its task."""
    state = _build(experiment, None, RunCallbacks())
    _resume(state, folder)
    return state.method, state.task


def _build(experiment: Experiment, weights: Path | None, callbacks: RunCallbacks) -> RunState:
    is_stream = experiment.pool is None
    check_experiment(experiment)
    task = load_task(experiment.stream, callbacks.checking)
    stream = build_stream(experiment, task)
    truth = stream.truth
    model = source_classifier(experiment, task, callbacks.training, weights=weights)
    began = time.perf_counter()
    method = _build_method(experiment, task, stream, model)
    setup_seconds = time.perf_counter() - began
    if experiment.report.model:
        adapted_model(method)  # raises now rather than at the end
    return RunState(
        experiment=experiment,
        task=task,
        stream=stream,
        method=method,
        oracle=build_oracle(
            experiment.labels, truth, experiment.seed, where=task.where, write=callbacks.write
        ),
        ledger=build_ledger(experiment),
        # Accuracy on a stream makes no sense for a pool: its samples are chosen because they are
        # hard.
        accuracy=Accuracy(stream.truth.labels, stream.truth.segments)
        if is_stream
        else Accuracy({}),
        source_hash=weights_hash(model),
        buffer=Buffer(experiment.labels.buffer),
        setup_seconds=setup_seconds,
        source_model=model if experiment.report.features and is_stream else None,
    )


def _build_method(experiment: Experiment, task: Task, stream: Stream, model: Classifier) -> Method:
    if experiment.pool is not None and isinstance(stream, Rounds):
        return build_pool(experiment, experiment.pool, stream, model)
    check_matched(experiment, stream)
    labels = experiment.labels
    return build_method(
        experiment.method,
        model,
        experiment.seed,
        task.source_train,
        build_rate(labels),
        labels.question,
    )


def _resume(state: RunState, folder: Path) -> int:
    """Restore a run from its snapshot; return the next step."""
    check_same_model(folder, state.source_hash)
    if not has_snapshot(folder):
        return 0
    device = choose_device(state.experiment.model.device)
    return state.load_state_dict(load_state(folder / SNAPSHOT, device)) + 1


def _feed(state: RunState, folder: Path, start: int, reporters: Sequence[Reporter]) -> None:
    """Send the rest of the stream through the method, with snapshots."""
    asks = state.experiment.asks
    # A person who is being asked can stop without answering the whole batch, and need not answer
    # twice. The rounds of a pool are few and long.
    every = 1 if asks or state.experiment.pool else state.experiment.report.save_every
    with stoppable(stopped(folder), at_once=asks) as stop:
        everyone = [*reporters, Saver(state, folder / SNAPSHOT, every, stop)]
        batches = until(stop, state.stream.batches(start))
        try:
            left = state.stream.sample_count - start * state.stream.batch_size
            run(
                batches,
                state.method,
                state.oracle,
                state.ledger,
                everyone,
                samples=left,
                buffer=state.buffer,
            )
            if stop.is_set():
                raise Interrupted(stopped(folder))
        finally:
            for reporter in everyone:
                reporter.close()


def _lines(
    state: RunState,
    folder: Path,
    callbacks: RunCallbacks,
    *,
    resume_after: int | None,
) -> JsonLines:
    return JsonLines(
        folder / STEPS_FILE,
        experiment=describe(state.experiment),
        environment={**environment(), **_fingerprints(state)},
        before=measure_before(state, callbacks.scoring) if resume_after is None else {},
        segments=list(dict.fromkeys(state.stream.truth.segments.values())),
        classes=state.task.classes,
        accuracy=state.accuracy,
        extras=measure_steps(state),
        resume_after=resume_after,
    )


def _fingerprints(state: RunState) -> dict[str, str]:
    """Return fingerprints that are equal for runs with the same model and stream."""
    stream = {} if state.experiment.pool else {"stream": state.stream.fingerprint}
    return {"model": state.source_hash, **stream}


def _finish(
    state: RunState, folder: Path, lines: JsonLines, scoring: ProgressCallback
) -> dict[str, Any]:
    late = drain(
        state.method,
        state.oracle,
        state.ledger,
        wait=state.experiment.labels.wait,
        class_count=len(state.task.classes),
    )
    state.updates += late.updates
    if state.experiment.report.model:
        _keep_model(state, folder)
    lines.end(measure_end(state, scoring))
    return mark_done(folder)


def _keep_model(state: RunState, folder: Path) -> None:
    experiment = state.experiment
    origin = f"{experiment.label} on {experiment.stream.name}, seed {experiment.seed}"
    facts = describe_model(experiment, state.task, origin)
    export_model(adapted_model(state.method), folder / MODEL_FILE, facts, replace_file=True)
