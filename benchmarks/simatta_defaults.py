"""SimATTA's defaults against its earlier ones, and against methods without labels.

    python benchmarks/simatta_defaults.py                      # digits, corrupted digits
    python benchmarks/simatta_defaults.py --data pacs --weights checkpoints/pacs-photo.safetensors

Prints a Markdown table for each data set: accuracy on the stream, lowest source accuracy along the
stream, labels, updates, and CPU seconds as a multiple of source-only's. "SimATTA before" is the
earlier default at the same pace of asking, with a learning rate that was chosen for each data set.
It has frozen statistics, momentum SGD on hard labels, all layers, up to 40 updates at every step
(20 on PACS). The corrupted digits are held-out source images with noise, blur, low contrast and
inverted ink. PACS is a part of it (`--share`), from a source model that `attakit pretrain
experiments/pacs/source.toml` trains.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attakit.bench.score import percent_right, right_answers
from attakit.build.data import build_stream, load_task
from attakit.build.methods import build_method
from attakit.build.models import source_classifier
from attakit.build.oracles import build_ledger, build_oracle
from attakit.build.task import Task
from attakit.engine.loop import run
from attakit.protocols import Method
from attakit.records import StepResult
from attakit.report.accuracy import Accuracy
from attakit.settings.load import parse_experiment
from attakit.stream.samples import ArraySamples, Domains

EARLIER = {"trainable": "all", "norm": "frozen"}
LR = {"digits": 2e-3, "corrupted": 2e-3, "pacs": 3e-4}  # chosen by hand, for each data set
GROWTH = {"digits": 4, "corrupted": 4, "pacs": 3}


def methods(data: str) -> dict[str, dict[str, Any]]:
    """The rows of a table."""
    selector = {"name": "incremental", "cluster_growth": GROWTH[data]}
    simatta = {"name": "simatta", "selector": selector}
    updates = 20 if data == "pacs" else 40
    tuned = {"name": "balanced", "lr": LR[data], "max_updates": updates}
    return {
        "source only": {"name": "source_only"},
        "batch norm": {"name": "batch_norm"},
        "SimATTA": simatta,
        "SimATTA before": {**simatta, **EARLIER, "trainer": tuned},
    }


@dataclass(frozen=True)
class Found:
    """What one run shows."""

    stream: float
    lowest_source: float
    labels: float
    updates: float
    seconds: float


class Watch:
    """Scores held-out source images every few steps, and adds up CPU seconds of the method."""

    def __init__(self, method: Method, task: Task, every: int) -> None:
        self.method, self.task, self.every = method, task, every
        self.source: list[float] = []
        self.labels = self.updates = 0

    def on_step(self, result: StepResult) -> None:
        self.labels = result.received
        self.updates += result.training.updates
        if self.every and result.batch.step % self.every == 0 and self.task.source_test is not None:
            right = percent_right(right_answers(self.method, self.task.source_test))
            assert right is not None
            self.source.append(right)

    def close(self) -> None:
        """Do nothing."""


class Timed:
    """Counts the CPU seconds of some functions of a method."""

    def __init__(self, method: Method) -> None:
        self.seconds = 0.0
        for name in ("step", "learn"):
            setattr(method, name, self._timed(getattr(method, name)))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            began = time.process_time()
            try:
                return function(*arguments)
            finally:
                self.seconds += time.process_time() - began

        return timed


def run_one(
    settings: dict[str, Any],
    task: Task,
    seed: int,
    tables: dict[str, Any],
    *,
    source_every: int = 3,
) -> Found:
    """One run of a method along a stream."""
    experiment = parse_experiment({"seed": seed, "threads": 1, "method": settings, **tables})
    stream = build_stream(experiment, task)
    model = source_classifier(experiment, task)
    method = build_method(experiment.method, model, seed, task.source_train)
    accuracy, watch = Accuracy(stream.truth.labels), Watch(method, task, every=source_every)
    timed = Timed(method)
    oracle = build_oracle(experiment.labels, stream.truth, seed)
    ledger, samples = build_ledger(experiment), len(stream.truth.labels)
    run(stream.batches(), method, oracle, ledger, [accuracy, watch], samples=samples)
    assert accuracy.stream is not None
    lowest = min(watch.source, default=float("nan"))
    return Found(accuracy.stream, lowest, watch.labels, watch.updates, timed.seconds)


def corrupted(task: Task) -> Task:
    """The held-out source digits, corrupted in four ways, as target domains."""
    test = task.source_test
    assert test is not None
    inputs = test.load(range(len(test)))
    parts = {
        name: ArraySamples(change(inputs), test.labels, prefix=f"{name}/")
        for name, change in CORRUPTIONS.items()
    }
    return replace(task, targets=Domains(task.classes, parts))


def _noise(inputs: Tensor) -> Tensor:
    return inputs + 0.8 * torch.randn(inputs.shape, generator=torch.Generator().manual_seed(0))


def _blur(inputs: Tensor) -> Tensor:
    return F.avg_pool2d(F.pad(inputs, (2, 2, 2, 2), mode="replicate"), 5, stride=1)


def _faint(inputs: Tensor) -> Tensor:
    lowest = inputs.amin()
    return lowest + 0.25 * (inputs - lowest)


def _inverted(inputs: Tensor) -> Tensor:
    return inputs.amax() + inputs.amin() - inputs


CORRUPTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "noise": _noise,
    "blur": _blur,
    "faint": _faint,
    "inverted": _inverted,
}


def print_table(
    data: str, task: Task, seeds: Sequence[int], tables: dict[str, Any], left_out: Sequence[str]
) -> None:
    """Run every method with every seed, and print one row for each."""
    print(f"\n{data}, seeds {', '.join(map(str, seeds))}\n")
    print("| method | stream | source, lowest | labels | updates | times source-only |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    reference = 0.0
    for name, settings in methods(data).items():
        if name in left_out:
            continue
        found = [run_one(settings, task, seed, tables) for seed in seeds]
        seconds = statistics.fmean(each.seconds for each in found)
        reference = reference or seconds
        stream = [each.stream for each in found]
        print(
            f"| {name} | {statistics.fmean(stream):.1f} ± {statistics.pstdev(stream):.1f} "
            f"| {min(each.lowest_source for each in found):.1f} "
            f"| {statistics.fmean(each.labels for each in found):.0f} "
            f"| {statistics.fmean(each.updates for each in found):.0f} "
            f"| {seconds / reference:.1f} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=(*LR, "all"), default="all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--weights", help="trained on photo, for --data pacs")
    parser.add_argument("--share", type=float, default=0.083, help="of PACS")
    parser.add_argument("--leave-out", nargs="+", default=[], metavar="METHOD")
    options = parser.parse_args()
    seeds, left_out = options.seeds, options.leave_out
    torch.set_num_threads(1)
    digits = {"stream": {"name": "digits"}, "labels": {"budget": 150}}
    task = load_task(parse_experiment(digits).stream)
    if options.data in ("digits", "all"):
        print_table("digits", task, seeds, digits, left_out)
    if options.data in ("corrupted", "all"):
        print_table("corrupted", corrupted(task), seeds, digits, left_out)
    if options.data == "pacs":
        pacs = {
            "stream": {"name": "pacs", "size": 128, "share": options.share, "batch_size": 50},
            "model": {"name": "resnet18", "weights": options.weights},
            "labels": {"budget": 60},
        }
        print_table("pacs", load_task(parse_experiment(pacs).stream), seeds, pacs, left_out)


if __name__ == "__main__":
    main()
