"""One run: build it, feed it, save it, and pick it up again where it stopped."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch

from attakit import __version__
from attakit.bench.build import build_ledger, build_method, build_oracle
from attakit.bench.data import build_stream, load_task
from attakit.bench.experiment import Experiment
from attakit.bench.models import Progress, source_classifier
from attakit.bench.pool_run import Watch, run_pool
from attakit.bench.recorded import build_features
from attakit.bench.run_folder import (
    DONE,
    SNAPSHOT,
    check_same_settings,
    clear_folder,
    describe,
    prepare_folder,
    read_end,
)
from attakit.bench.run_state import RunState, Saver
from attakit.bench.score import (
    Scoring,
    percent_right,
    sample_accuracy,
    score_domains,
    together_accuracy,
)
from attakit.bench.stopping import Interrupted, stoppable, until
from attakit.engine.loop import drain, run
from attakit.errors import StateError
from attakit.nn.devices import choose_device
from attakit.nn.weights import weights_hash
from attakit.protocols import Reporter
from attakit.records import Moment
from attakit.report.accuracy import Accuracy
from attakit.report.jsonlines import STEPS_FILE, JsonLines, peak_memory_mb
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.report.runs import read_run
from attakit.store.snapshot import load_snapshot
from attakit.stream.batches import Stream

Observers = Callable[[Stream, Accuracy, int], Sequence[Reporter]]


def run_experiment(
    experiment: Experiment,
    *,
    resume: bool = False,
    replace: bool = False,
    folder: Path | None = None,
    weights: Path | None = None,
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
    folder, weights
        Where results go and the source model is, where a run takes place away from the folder and
        the files that the experiment names. The results say what the experiment says.
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
    folder = folder or experiment.report.folder
    prepare_folder(folder, resume=resume, replace=replace)
    if resume:
        check_same_settings(experiment, folder)
        if (folder / DONE).exists():
            return read_end(folder)
    if experiment.pool is not None:
        watch = Watch(observers, write, training, scoring)
        return run_pool(experiment, folder, environment, watch, resume=resume, replace=replace)
    if experiment.threads:
        torch.set_num_threads(experiment.threads)
    state = _build(experiment, weights, write, training)
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
    experiment: Experiment,
    weights: Path | None,
    write: Callable[[str], None] | None,
    training: Progress | None,
) -> RunState:
    task = load_task(experiment.stream)
    stream = build_stream(experiment, task)
    model = source_classifier(experiment, task, training, weights=weights)
    return RunState(
        experiment=experiment,
        task=task,
        stream=stream,
        method=build_method(experiment.method, model, experiment.seed, task.source_train),
        oracle=build_oracle(
            experiment.labels, stream.truth, experiment.seed, where=task.where, write=write
        ),
        ledger=build_ledger(experiment),
        accuracy=Accuracy(stream.truth.labels, stream.truth.segments),
        source_hash=weights_hash(model),
        source_model=model if experiment.report.features else None,
    )


def _resume(state: RunState, folder: Path) -> int:
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


def _feed(state: RunState, folder: Path, start: int, reporters: Sequence[Reporter]) -> None:
    """Send the rest of the stream through the method, saving on the way."""
    asks = state.experiment.asks
    # A person who is being asked need not answer the whole batch to get away, nor answer twice.
    every = 1 if asks else state.experiment.report.save_every
    with stoppable(_stopped(folder), at_once=asks) as stop:
        everyone = [*reporters, Saver(state, folder / SNAPSHOT, every, stop)]
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
    state: RunState, folder: Path, start: int, *, resumed: bool
) -> tuple[JsonLines, list[Reporter]]:
    resume_after = start - 1 if resumed else None
    truth, classes = state.stream.truth, state.task.classes
    lines = JsonLines(
        folder / STEPS_FILE,
        experiment=describe(state.experiment),
        environment=environment() | _fingerprints(state),
        before={} if resumed else _source_before(state),
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
    if state.source_model is not None:
        reporters.append(build_features(state, state.source_model, folder, resume_after))
    return lines, reporters


def _fingerprints(state: RunState) -> dict[str, str]:
    """By which runs that started from the same model and met the same stream are known."""
    return {"model": state.source_hash, "stream": state.stream.fingerprint}


def _source_before(state: RunState) -> Mapping[str, float]:
    if not state.experiment.report.source_every or state.task.source_test is None:
        return {}
    return {"source_accuracy": sample_accuracy(state.method, state.task.source_test)}


def _source_check(state: RunState) -> Callable[[Moment], Mapping[str, float]]:
    every, last = state.experiment.report.source_every, len(state.stream) - 1

    def measure(moment: Moment) -> Mapping[str, float]:
        step = moment.batch.step
        if not every or state.task.source_test is None or (step % every and step != last):
            return {}
        return {"source_accuracy": sample_accuracy(state.method, state.task.source_test)}

    return measure


def _finish(state: RunState, folder: Path, lines: JsonLines, scoring: Scoring) -> dict[str, Any]:
    late = drain(
        state.method,
        state.oracle,
        state.ledger,
        wait=state.experiment.labels.wait,
        class_count=len(state.task.classes),
    )
    state.updates += late.updates
    lines.end(_end(state, scoring))
    # In this order: whatever a crash leaves behind, a finished run is never run again.
    (folder / DONE).touch()
    (folder / SNAPSHOT).unlink(missing_ok=True)
    return read_end(folder)


def _end(state: RunState, scoring: Scoring) -> dict[str, Any]:
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
        end |= _after_adaptation(state, scoring)
    return end


def _after_adaptation(state: RunState, scoring: Scoring) -> dict[str, Any]:
    """Accuracy on whole domains, with and without the labelled samples, and on the whole source."""
    labelled = state.stream.originals(state.ledger.labelled)
    domains = score_domains(state.method, state.task.targets, scoring)
    after: dict[str, Any] = {
        "post_adaptation": {name: percent_right(right) for name, right in domains.items()},
        "post_adaptation_unlabelled": {
            name: percent_right(right, without=labelled) for name, right in domains.items()
        },
    }
    source = [
        part for part in (state.task.source_train, state.task.source_test) if part is not None
    ]
    if source:
        # The paper's figure, which counts images that the model was trained on.
        after["source_accuracy_whole"] = together_accuracy(state.method, source)
    return after
