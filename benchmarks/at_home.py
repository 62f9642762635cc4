"""Measure whether a method still answers source images like the source model.

    python benchmarks/at_home.py --seeds 20 21 22                  # digits, both stream orders
    python benchmarks/at_home.py --orders random --cards auto
    python benchmarks/at_home.py --method simatta
    python benchmarks/at_home.py --data letters       # see experiments/fast/suite.toml

Every few batches of the stream, held-out source images are answered twice. Once they are in
separate batches, and once they share batches with images of the stream. Answering changes no state.
Prints a Markdown table of means over seeds: accuracy on the stream, and mean and lowest accuracy of
both kinds of answers. The last column is how often images of the stream were taken for source
images. "none" has no source card, "stored" guesses one from what batch norm stored, and "auto" has
one made from 400 source images.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from typing import Any

import torch
from many_labels import DOMAINS, ORDERS
from torch import Tensor

from attakit.build.data import build_stream, load_task
from attakit.build.methods import build_method
from attakit.build.models import source_classifier
from attakit.build.oracles import build_ledger, build_oracle
from attakit.build.task import Task
from attakit.engine.loop import run
from attakit.methods import AnchorHead, SimATTA
from attakit.nn.styles import Grouping
from attakit.records import StepResult
from attakit.report.accuracy import Accuracy
from attakit.settings.load import parse_experiment

CARDS = ("none", "stored", "auto")
BUDGET = 184
IMAGES = 400
HALF = 50
DATA: dict[str, dict[str, Any]] = {
    "digits": {"stream": {"name": "digits"}},
    "letters": {
        "stream": {"name": "folders", "root": "data/letters", "source": "print", "size": 32},
        "model": {"name": "small_cnn", "weights": "checkpoints/letters-print.safetensors"},
    },
    "pacs": {
        "stream": {"name": "pacs", "size": 128, "share": 0.333, "rest": True},
        "model": {
            "name": "resnet18",
            "weights": "checkpoints/pacs-photo-resnet18.safetensors",
        },
    },
}
TARGETS = {
    "digits": DOMAINS,
    "letters": ("italic", "photocopy", "sign"),
    "pacs": ("art_painting", "cartoon", "sketch"),
}


class AtHome:
    """Score held-out source images along a stream, alone and mixed into its batches."""

    def __init__(self, method: AnchorHead | SimATTA, task: Task, every: int) -> None:
        assert task.source_test is not None
        # In random order: a batch of one class would have its own statistics.
        order = torch.Generator().manual_seed(0)
        places = torch.randperm(len(task.source_test), generator=order)[:IMAGES].tolist()
        self.images = task.source_test.load(places)
        self.labels = torch.tensor([task.source_test.labels[place] for place in places])
        self.method, self.every = method, every
        self.alone: list[float] = []
        self.mixed: list[float] = []
        self.strangers: list[float] = []  # taken for source images

    def on_step(self, result: StepResult) -> None:
        if result.batch.step % self.every != self.every // 2:
            return
        company = result.batch.inputs[:HALF]
        self.alone.append(self._score(company[:0]))
        self.mixed.append(self._score(company))

    def close(self) -> None:
        """Do nothing."""

    def _score(self, company: Tensor) -> float:
        right = 0
        for images, labels in zip(self.images.split(HALF), self.labels.split(HALF), strict=True):
            answers = self.method.predict(torch.cat([company, images])).logits.argmax(dim=1)
            right += int((answers[len(company) :] == labels).sum())
            grouping = _grouping(self.method)
            if grouping is not None and len(company):
                self.strangers.append(100 * float(grouping.home[: len(company)].mean()))
        return 100 * right / len(self.labels)


def _grouping(method: AnchorHead | SimATTA) -> Grouping | None:
    """Return the style groups of the last batch."""
    if isinstance(method, AnchorHead):
        return method.statistics.grouping
    return None if method.home is None else method.home.grouping


def measure(name: str, data: str, order: str, card: str, seed: int, every: int) -> list[float]:
    """Return accuracies and the share of stream images taken for source, in column order."""
    names, base = TARGETS[data], DATA[data]
    targets = [*names[seed % len(names) :], *names[: seed % len(names)]]
    settings: dict[str, Any] = {} if card == "none" else {"source_card": card}
    tables = {
        "seed": seed,
        "threads": 1,
        "method": {"name": name, **settings},
        **base,
        "stream": {**base["stream"], "order": order, "batch_size": 100, "targets": targets},
        "labels": {"budget": BUDGET},
    }
    experiment = parse_experiment(tables)
    task = load_task(experiment.stream)
    stream, model = build_stream(experiment, task), source_classifier(experiment, task)
    method = build_method(experiment.method, model, seed, task.source_train)
    assert isinstance(method, AnchorHead | SimATTA)
    score, watch = Accuracy(stream.truth.labels), AtHome(method, task, every)
    oracle = build_oracle(experiment.labels, stream.truth, seed)
    samples = len(stream.truth.labels)
    run(stream.batches(), method, oracle, build_ledger(experiment), [score, watch], samples=samples)
    assert score.stream is not None
    along = [each for row in (watch.alone, watch.mixed) for each in (_mean(row), min(row))]
    return [score.stream, *along, _mean(watch.strangers)]


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", choices=("anchor_head", "simatta"), default="anchor_head")
    parser.add_argument("--data", choices=DATA, default="digits")
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    parser.add_argument("--orders", choices=ORDERS, nargs="+", default=[*ORDERS])
    parser.add_argument("--cards", choices=CARDS, nargs="+", default=[*CARDS])
    parser.add_argument("--every", type=int, default=6, help="batches from one look to the next")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "| order | card | stream | source alone | lowest | source mixed in | lowest | strangers |"
    )
    print(f"|---|---|{'---:|' * 6}", flush=True)
    for order in options.orders:
        for card in options.cards:
            rows = [
                measure(options.method, options.data, order, card, seed, options.every)
                for seed in options.seeds
            ]
            cells = " | ".join(f"{_mean(column):.1f}" for column in zip(*rows, strict=True))
            print(f"| {ORDERS[order]} | {card} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
