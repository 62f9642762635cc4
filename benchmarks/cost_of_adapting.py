"""Measure what adapting costs: times as multiples of source-only inference, in one run.

    python benchmarks/cost_of_adapting.py
    python benchmarks/cost_of_adapting.py --models digits --batches 34 --repeats 5
    python benchmarks/cost_of_adapting.py --models resnet18 --methods anchor_head --batches 16

All methods see the same batches in turn, on one thread, and process time is measured. So other work
on the machine slows all of them alike. Ratios are medians over repeats. Digits run on their stream.
ResNet-18 and EfficientNet-Lite0 run on PACS at 128 pixels where it is found, else on random images
of two styles. Their weights are random, which is good enough for timing.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # large pages, as commands have them

import torch
from torch import Tensor, nn

from attakit.build.data import build_stream, load_task
from attakit.build.models import digits_model
from attakit.build.sets.places import DATA_VARIABLE
from attakit.methods import METHODS, AnchorHead
from attakit.nn.classifier import Classifier
from attakit.nn.devices import prepare
from attakit.nn.frozen_head import FrozenHead
from attakit.nn.head_files import save_difference
from attakit.nn.named import named_model
from attakit.nn.seeding import seeded, torch_generator
from attakit.processes.threads import using_threads
from attakit.queries import Allowance, Answer, Query
from attakit.records import Batch
from attakit.select import LabelRate
from attakit.settings.load import parse_experiment

NEIGHBOUR = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZE, PIXELS, IMAGE_CLASSES = 100, 128, 7
BUDGET = 10_000  # never used up: each method asks at its usual pace
PER_BATCH = 10  # labels, where they are learned one by one
METHOD_NAMES = ("source_only", "batch_norm", "tent", "anchor_head", "simatta")
GOALS = {
    "resnet18": {"anchor_head": 1.25, "simatta": 6.0},
    "efficientnet_lite0": {"anchor_head": 1.4, "simatta": 6.0},
    "digits": {"anchor_head": 1.5, "simatta": 6.0},
}
MOST_MILLISECONDS, MOST_KILOBYTES, MOST_EXTRA = 50.0, 20.0, 10.0


@dataclass(frozen=True)
class Case:
    """A model and the batches that it is measured on."""

    name: str
    model: nn.Module
    batches: Sequence[Batch]
    labels: Mapping[str, int]


def digits_case(count: int) -> Case:
    """The digits in the order of their stream, and the source model of the demo."""
    experiment = parse_experiment({"stream": {"batch_size": SIZE}})
    task = load_task(experiment.stream)
    batches, labels = take(build_stream(experiment, task), count)
    return Case("digits", digits_model(task), batches, labels)


def image_case(name: str, count: int, pixels: int = PIXELS, size: int = SIZE) -> Case:
    """A large model with random weights, on PACS where it is found."""
    with seeded(0, name):
        model = named_model(name, classes=IMAGE_CLASSES)
    if (Path(os.environ.get(DATA_VARIABLE, "data")) / "PACS").exists():
        stream = {"name": "pacs", "size": pixels, "batch_size": size, "order": "random"}
        experiment = parse_experiment({"stream": stream})
        batches, labels = take(build_stream(experiment, load_task(experiment.stream)), count)
    else:
        batches = list(random_batches(count, pixels, size))
        labels = {name: place % IMAGE_CLASSES for place, name in enumerate(names_of(batches))}
    return Case(name, model, batches, labels)


def take(stream: Any, count: int) -> tuple[list[Batch], dict[str, int]]:
    """The first batches of a stream, loaded, and the true labels."""
    return list(islice(stream.batches(), count)), stream.truth.labels


def random_batches(count: int, pixels: int, size: int) -> Iterator[Batch]:
    """Noise of two styles: dark and smooth, or bright and coarse."""
    for number in range(count):
        random = torch_generator(0, "cost", number)
        inputs = torch.randn(size, 3, pixels, pixels, generator=random)
        inputs[::2] = 2 - 3 * inputs[::2]
        yield Batch(number, tuple(f"{number}-{place}" for place in range(size)), inputs)


def names_of(batches: Sequence[Batch]) -> list[str]:
    return [name for batch in batches for name in batch.samples]


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """Process time of an action, and what it returns."""
    began = time.process_time()
    found = action()
    return time.process_time() - began, found


def answers(queries: Sequence[Query], labels: Mapping[str, int]) -> list[Answer]:
    return [Answer(query, int(labels[query.sample]), "truth") for query in queries]


def times(case: Case, names: Sequence[str] = METHOD_NAMES) -> dict[str, float]:
    """Milliseconds of each method per batch."""
    methods = {name: METHODS[name](case.model) for name in names}
    totals = dict.fromkeys(names, 0.0)
    for batch in case.batches:
        for name, method in methods.items():
            spent, step = seconds(partial(method.step, batch, Allowance(BUDGET)))
            given = answers(step.queries, case.labels)
            totals[name] += spent + seconds(partial(method.learn, given))[0]
    return {name: 1000 * total / len(case.batches) for name, total in totals.items()}


@dataclass(frozen=True)
class Learned:
    """What single labels cost the anchor head."""

    median: float  # milliseconds
    slowest: float  # milliseconds
    per_label: float  # kilobytes that one more label adds to the state
    fixed: float  # kilobytes of the state without labels
    labels: int
    version: float  # kilobytes of a version's file in a service
    styles: int  # style groups in it


def learn_one_by_one(case: Case) -> Learned:
    """Let the anchor head see all batches, and then give it one label after the other."""
    rate = LabelRate(per_1000=1000 * PER_BATCH / SIZE)
    method = AnchorHead(case.model, rate=rate)
    steps = [method.step(batch, Allowance(BUDGET)) for batch in case.batches]
    given = answers([query for step in steps for query in step.queries], case.labels)
    fixed = state_bytes(method.state_dict()) - state_bytes(method.waiting.state_dict())
    spent = [1000 * seconds(partial(method.learn, [one]))[0] for one in given]
    grown = (state_bytes(method.state_dict()) - fixed) / len(given)
    version = method.adapted_model
    return Learned(
        statistics.median(spent),
        max(spent),
        grown / 1000,
        fixed / 1000,
        len(given),
        file_bytes(version, case.model) / 1000,
        1 if version.styles is None else len(version.styles.foreign),
    )


def file_bytes(version: FrozenHead, source: nn.Module) -> int:
    """Size of the file that a service keeps of a version."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "version.safetensors")
        save_difference(version, prepare(copy.deepcopy(source), torch.device("cpu")), path)
        return path.stat().st_size


def state_bytes(state: object) -> int:
    """Bytes of all tensors in a saved state."""
    if isinstance(state, Tensor):
        return state.nbytes
    if isinstance(state, Mapping):
        return sum(map(state_bytes, state.values()))
    return sum(map(state_bytes, state)) if isinstance(state, (list, tuple)) else 0


def blending_extra(case: Case) -> float:
    """Percent that blended statistics add to a plain pass."""
    plain, blended = (Classifier(copy.deepcopy(case.model)).eval() for _ in range(2))
    blended.use_norm("blended")
    ratios = []
    with torch.no_grad():
        plain(case.batches[0].inputs)  # the first pass is slower
        for batch in case.batches:
            alone = seconds(partial(plain, batch.inputs))[0]
            ratios.append(seconds(partial(blended, batch.inputs))[0] / alone)
            blended.keep_statistics()
    return 100 * (statistics.median(ratios) - 1)


def verdict(value: float, goal: float | None) -> str:
    """A figure and its goal, if it has one."""
    if goal is None:
        return f"{value:.2f}"
    return f"{value:.2f} (goal {goal:g}{'' if value <= goal else ', missed'})"


def print_times(case: Case, names: Sequence[str], repeats: int) -> None:
    """Print the times of methods, and what a label and blending cost."""
    runs = [times(case, names) for _ in range(repeats)]
    print(f"\n{case.name}: {len(case.batches)} batches of {len(case.batches[0])}")
    for name in names:
        middle = statistics.median(found[name] / found[names[0]] for found in runs)
        spent = statistics.median(found[name] for found in runs)
        goal = GOALS[case.name].get(name)
        print(f"  {name}: {verdict(middle, goal)} times source-only, {spent:.0f} ms per batch")
    learned = learn_one_by_one(case)
    print(f"  one label learned: {verdict(learned.median, MOST_MILLISECONDS)} ms, ", end="")
    print(f"slowest of {learned.labels} {learned.slowest:.0f} ms")
    print(f"  state: {verdict(learned.per_label, MOST_KILOBYTES)} kB per label, ", end="")
    print(f"{learned.fixed:.0f} kB without labels")
    print(f"  a version: {learned.version:.0f} kB with {learned.styles} style groups")
    extra = statistics.median(blending_extra(case) for _ in range(repeats))
    print(
        f"  blended statistics: {verdict(extra, MOST_EXTRA)} % more than a plain pass", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=tuple(GOALS), default=list(GOALS))
    parser.add_argument("--methods", nargs="+", choices=METHOD_NAMES[1:], default=METHOD_NAMES[1:])
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if DATA_VARIABLE not in os.environ and NEIGHBOUR.exists():
        os.environ[DATA_VARIABLE] = str(NEIGHBOUR)
    with using_threads(1):
        for name in options.models:
            build = digits_case if name == "digits" else partial(image_case, name)
            names = (METHOD_NAMES[0], *options.methods)
            print_times(build(options.batches), names, options.repeats)


if __name__ == "__main__":
    main()
