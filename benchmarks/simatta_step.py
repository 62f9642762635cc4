"""Measure where the time of a SimATTA step goes, and whether memory grows with the stream.

    python benchmarks/simatta_step.py                # PACS where it is found, else digits
    python benchmarks/simatta_step.py --data digits

SimATTA trains as in the paper here; `simatta_defaults.py` measures its defaults. Prints ratios
measured in this run. The first is the share of a step outside forward and backward passes (aim on
PACS: at most 10 %). The second is SimATTA's time as a multiple of source-only inference. Also
prints what a shared forward pass and the channels-last layout save, and whether peak memory grows
on a stream six times as long.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from attakit.build.data import build_stream, load_task
from attakit.build.methods import build_method
from attakit.build.models import digits_model
from attakit.build.oracles import build_ledger, build_oracle
from attakit.build.sets.places import DATA_VARIABLE
from attakit.build.task import Task
from attakit.engine import run
from attakit.methods.reference import ReferenceTrainer
from attakit.nn.classifier import Classifier
from attakit.nn.named import named_model
from attakit.nn.weights import load_weights
from attakit.records import StepResult
from attakit.report.jsonlines import peak_memory_mb
from attakit.settings.experiment import Experiment
from attakit.settings.load import parse_experiment
from attakit.train.balanced import BalancedTrainer

CHECKPOINT = Path("checkpoints/pacs-photo.safetensors")
NEIGHBOUR = Path(__file__).resolve().parents[2] / "shared" / "data"
LONG = 6
SIMATTA = {"name": "simatta", "trainer": "balanced", "trainable": "all", "norm": "frozen"}


class RunCallbacks:
    """Adds up what a run costs, as a reporter and around the model's passes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.in_passes = 0.0
        self.updates = 0

    def on_step(self, result: StepResult) -> None:
        self.seconds += result.seconds
        self.updates += result.training.updates

    def close(self) -> None:
        pass

    @contextmanager
    def on_passes(self) -> Iterator[None]:
        forward, backward = Classifier.forward, Tensor.backward
        Classifier.forward = self._timed(forward)  # type: ignore[method-assign]
        Tensor.backward = self._timed(backward)  # type: ignore[method-assign]
        try:
            yield
        finally:
            Classifier.forward, Tensor.backward = forward, backward  # type: ignore[method-assign]

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **settings: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **settings)
            finally:
                self.in_passes += time.perf_counter() - began

        return timed


def describe(data: str, method: dict[str, Any], budget: int = 10_000, **stream: Any) -> Experiment:
    """An experiment on a data set, by default with a budget that is never used up."""
    return parse_experiment(
        {"stream": {"name": data, **stream}, "method": method, "labels": {"budget": budget}}
    )


def source_model(data: str, task: Task) -> nn.Module:
    """A trained model where there is one; for timing any weights will do."""
    if data == "digits":
        return digits_model(task)
    model = named_model("resnet18", classes=len(task.classes))
    if CHECKPOINT.exists():
        load_weights(model, CHECKPOINT)
    return model


def watch_steps(
    experiment: Experiment, task: Task, model: nn.Module, steps: int | None
) -> RunCallbacks:
    """Run the first steps of an experiment; loading images is not counted."""
    stream = build_stream(experiment, task)
    method = build_method(experiment.method, model, seed=0)
    oracle = build_oracle(experiment.labels, stream.truth, seed=0)
    callbacks = RunCallbacks()
    with callbacks.on_passes():
        batches = islice(stream.batches(), steps)
        run(batches, method, oracle, build_ledger(experiment), [callbacks])
    return callbacks


def measure_time(data: str, steps: int) -> None:
    """Print where the time goes."""
    task = load_task(describe(data, SIMATTA).stream)
    model = source_model(data, task)

    def callbacks(method: dict[str, Any]) -> RunCallbacks:
        return watch_steps(describe(data, method), task, model, steps)

    callbacks({"name": "source_only"})  # warms the caches up: nothing is printed of it
    source = callbacks({"name": "source_only"})
    simatta = callbacks(SIMATTA)
    with patch.object(BalancedTrainer, "_logits", ReferenceTrainer._logits):  # one pass per half
        apart = callbacks(SIMATTA)
    other = 100 * (1 - simatta.in_passes / simatta.seconds)
    say(f"{data}, {steps} steps of 100, {torch.get_num_threads()} threads")
    say(f"SimATTA: {simatta.seconds / steps:.2f} s a step, {simatta.updates / steps:.0f} updates")
    say(f"outside forward and backward passes: {other:.1f} % of the step")
    say(f"multiple of source-only inference: {simatta.seconds / source.seconds:.1f}")
    ratio = (apart.seconds / apart.updates) / (simatta.seconds / simatta.updates)
    say(f"two forward passes per update instead of one shared: {ratio:.2f} times the time")
    say(f"channels-first instead of channels-last inference: {layout_ratio(model, task):.2f} times")


def layout_ratio(model: nn.Module, task: Task) -> float:
    """Time of a forward pass in the default layout over that in channels-last."""
    samples = next(iter(task.targets.parts.values()))
    inputs = samples.load(range(min(100, len(samples)))).contiguous()
    seconds = []
    for layout in (torch.contiguous_format, torch.channels_last):
        placed, batch = model.to(memory_format=layout).eval(), inputs.to(memory_format=layout)  # type: ignore[call-overload]
        with torch.no_grad():
            placed(batch)
            began = time.perf_counter()
            for _ in range(3):
                placed(batch)
            seconds.append(time.perf_counter() - began)
    return seconds[0] / seconds[1]


def measure_memory() -> None:
    """Print peak memory of a short and of a long stream, each in its own process."""
    short, long = (
        float(
            subprocess.run(
                [sys.executable, __file__, "--rounds", str(rounds)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for rounds in (1, LONG)
    )
    say(f"peak memory on digits: {short:.0f} MB; on a stream {LONG} times as long: {long:.0f} MB")


def peak_of_rounds(rounds: int) -> float:
    """Peak memory of this process after streaming the digits several times."""
    experiment = describe(
        "digits",
        SIMATTA,
        budget=30,  # used up early: labelled anchors grow with the budget, not with the stream
        order="recurring",
        order_settings={"rounds": LONG},
    )
    task = load_task(experiment.stream)
    steps = len(build_stream(experiment, task)) * rounds // LONG
    watch_steps(experiment, task, digits_model(task), steps)
    peak = peak_memory_mb()
    assert peak is not None, "this system does not report its memory"
    return peak


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=("pacs", "digits"))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rounds:
        say(str(peak_of_rounds(options.rounds)))
        return
    if DATA_VARIABLE not in os.environ and NEIGHBOUR.exists():
        os.environ[DATA_VARIABLE] = str(NEIGHBOUR)
    found = (Path(os.environ.get(DATA_VARIABLE, "data")) / "PACS").exists()
    measure_memory()  # first: a process starts with the peak of the one that made it
    measure_time(options.data or ("pacs" if found else "digits"), options.steps)


if __name__ == "__main__":
    main()
