"""One pool run: the same folder, lines and figures as a run along a stream, a round per line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from attakit.bench.callbacks import RunCallbacks
from attakit.bench.measure import final_scores, spent
from attakit.bench.recorded import build_pictures
from attakit.bench.run_folder import (
    SNAPSHOT,
    check_same_model,
    clear_folder,
    describe,
    has_snapshot,
    mark_done,
    stopped,
)
from attakit.bench.saved_model import keep_model
from attakit.bench.score import score_held_out
from attakit.build.data import Task, load_task
from attakit.build.methods import build_pool_selector
from attakit.build.models import source_classifier
from attakit.build.oracles import build_ledger, build_oracle
from attakit.build.task import Counting, count_silently
from attakit.engine.pool import PoolAdaptation
from attakit.errors import SettingError
from attakit.nn.classifier import Classifier
from attakit.nn.devices import choose_device
from attakit.nn.weights import weights_hash
from attakit.processes.interrupt import Interrupted, stoppable
from attakit.protocols import Method, Reporter
from attakit.records import StepResult
from attakit.report.accuracy import Accuracy
from attakit.report.jsonlines import STEPS_FILE, JsonLines
from attakit.settings.experiment import Experiment, MethodTable, PoolTable
from attakit.store.tensor_file import load_state, save_state
from attakit.stream.batches import Stream
from attakit.stream.joined import Joined
from attakit.stream.order import domain_after_domain
from attakit.stream.truth import Truth


@dataclass
class _PoolRun:
    """The objects of one pool run."""

    experiment: Experiment
    task: Task
    truth: Truth
    adaptation: PoolAdaptation
    source_hash: str
    seconds: float = 0.0
    updates: int = 0

    def state_dict(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "updates": self.updates,
            "adaptation": self.adaptation.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.seconds = state["seconds"]
        self.updates = state["updates"]
        self.adaptation.load_state_dict(state["adaptation"])


def run_pool(
    experiment: Experiment,
    folder: Path,
    environment: Mapping[str, Any],
    callbacks: RunCallbacks,
    *,
    weights: Path | None,
    resume: bool,
    replace: bool,
) -> dict[str, Any]:
    """Adapt over all targets as one pool and return the end line of the results.

    Every round is saved, so a run that was stopped goes on with the round it was in.
    """
    state = _build(experiment, weights, callbacks)
    if replace:
        clear_folder(folder)
    if resume:
        _resume(state, folder)
    lines, reporters = _reporters(state, folder, environment, callbacks, resumed=resume)
    rounds, start = range(state.adaptation.rounds), state.adaptation.round
    _run_rounds(state, folder, [*reporters, *callbacks.observers(rounds, Accuracy({}), start)])
    with stoppable(stopped(folder), at_once=True):
        return _finish(state, folder, lines, callbacks.scoring)


def saved_learner(experiment: Experiment, folder: Path) -> tuple[Method, Task]:
    """What learned in a stopped pool run as it was saved last, and what it worked on."""
    state = _build(experiment, None, RunCallbacks())
    _resume(state, folder)
    return state.adaptation.learner, state.task


def check_pool(experiment: Experiment, table: PoolTable) -> None:
    """Raise `SettingError` where a pool run cannot be, as far as that shows without a model."""
    if experiment.method != MethodTable():
        raise SettingError(
            "An experiment has either a [method] for a stream or a [pool]: leave one of them out."
        )
    build_pool_selector(table.selector, experiment.seed)


def _build(experiment: Experiment, weights: Path | None, callbacks: RunCallbacks) -> _PoolRun:
    table = experiment.pool
    assert table is not None, "only for experiments with a [pool] table"
    check_pool(experiment, table)
    task = load_task(experiment.stream, callbacks.checking)
    # For its names and labels only: in a pool, nothing comes before anything else.
    order = domain_after_domain(task.targets)
    truth = Stream(task.targets, order, batch_size=experiment.stream.batch_size).truth
    model = source_classifier(experiment, task, callbacks.training, weights=weights)
    adaptation = _adaptation(experiment, table, task, truth, model, callbacks)
    return _PoolRun(experiment, task, truth, adaptation, weights_hash(model))


def _adaptation(
    experiment: Experiment,
    table: PoolTable,
    task: Task,
    truth: Truth,
    model: Classifier,
    callbacks: RunCallbacks,
) -> PoolAdaptation:
    seed = experiment.seed
    return PoolAdaptation(
        model,
        Joined(list(task.targets.parts.values())),
        build_oracle(experiment.labels, truth, seed, where=task.where, write=callbacks.write),
        build_ledger(experiment),
        selector=build_pool_selector(table.selector, seed),
        rounds=table.rounds,
        updates=table.updates,
        lr=table.lr,
        momentum=table.momentum,
        batch_size=table.batch_size,
        norm=table.norm,
        trainable=table.trainable,
        forward_batch=experiment.stream.batch_size,
        seed=seed,
    )


def _resume(state: _PoolRun, folder: Path) -> None:
    """Bring a run to the end of its last saved round."""
    check_same_model(folder, state.source_hash)
    if has_snapshot(folder):
        device = choose_device(state.experiment.model.device)
        state.load_state_dict(load_state(folder / SNAPSHOT, device))


def _reporters(
    state: _PoolRun,
    folder: Path,
    environment: Mapping[str, Any],
    callbacks: RunCallbacks,
    *,
    resumed: bool,
) -> tuple[JsonLines, list[Reporter]]:
    resume_after = state.adaptation.round - 1 if resumed else None
    every = state.experiment.report.source_every
    lines = JsonLines(
        folder / STEPS_FILE,
        experiment=describe(state.experiment),
        environment={**environment, "model": state.source_hash},
        before={} if resumed or not every else _source(state, callbacks.scoring),
        segments=list(state.task.targets.parts),
        classes=state.task.classes,
        extras=lambda result: _extras(state, result),
        resume_after=resume_after,
    )
    pictures = build_pictures(state.experiment, state.task, state.truth, folder, resume_after)
    return lines, [lines, *pictures]


def _extras(state: _PoolRun, result: StepResult) -> dict[str, float | None]:
    """Accuracy on the pool before the round, and now and then on the source after it."""
    extras: dict[str, float | None] = {}
    seen, every = state.adaptation.seen, state.experiment.report.source_every
    if seen is not None and result.batch.samples:
        labels = torch.tensor([state.truth.labels[name] for name in seen.samples])
        right = seen.logits.argmax(dim=1).cpu() == labels
        extras["pool_accuracy"] = 100 * float(right.double().mean())
    number = result.batch.step
    if every and (number % every == 0 or number == state.adaptation.rounds - 1):
        extras |= _source(state)
    return extras


def _source(state: _PoolRun, scoring: Counting = count_silently) -> dict[str, float | None]:
    return score_held_out(state.adaptation.learner, state.task, scoring)


def _run_rounds(state: _PoolRun, folder: Path, reporters: Sequence[Reporter]) -> None:
    """Do the rounds that are left, saving after each."""
    with stoppable(stopped(folder), at_once=state.experiment.asks) as stop:
        try:
            while not (state.adaptation.is_finished or stop.is_set()):
                result = state.adaptation.run_round()
                state.seconds += result.seconds
                state.updates += result.training.updates
                for reporter in reporters:
                    reporter.on_step(result)
                save_state(folder / SNAPSHOT, state.state_dict())
        finally:
            for reporter in reporters:
                reporter.close()
        if stop.is_set():
            raise Interrupted(stopped(folder))


def _finish(state: _PoolRun, folder: Path, lines: JsonLines, scoring: Counting) -> dict[str, Any]:
    state.updates += state.adaptation.finish(wait=state.experiment.labels.wait).updates
    keep_model(state.experiment, state.task, state.adaptation.learner, folder)
    lines.end(_end(state, scoring))
    return mark_done(folder)


def _end(state: _PoolRun, scoring: Counting) -> dict[str, Any]:
    ledger, learner = state.adaptation.ledger, state.adaptation.learner
    return {
        "stream_accuracy": None,  # there is no stream
        "segments": {},
        **spent(ledger, state.seconds, state.updates),
        **final_scores(state.experiment, learner, state.task, set(learner.labels), scoring),
    }
