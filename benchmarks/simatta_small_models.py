"""SimATTA's learning rate on small models: tabular data with and without norm layers, token ids.

    python benchmarks/simatta_small_models.py              # two seeds, a few minutes

Prints a Markdown table of accuracy on a stream of four shifted domains (1,200 samples, 150 labels).
"Before" is the earlier default, momentum SGD with one learning rate for all models. Tables are the
wine and breast-cancer data of scikit-learn, whose columns are scaled and moved in each domain.
Texts are drawn from a distribution of words per class, and many words change places in a domain.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer, load_wine
from torch import Tensor, nn

from attakit.engine import adapt
from attakit.label import Budget
from attakit.methods import BaseMethod, BatchNorm, SimATTA, SourceOnly
from attakit.nn.seeding import seeded
from attakit.select import IncrementalClustering
from attakit.train import BalancedTrainer

DOMAINS, SAMPLES, BATCH, LABELS = 4, 300, 30, 150
WORDS, LENGTH, CLASSES, MOVED = 200, 12, 4, 90

Part = tuple[Tensor, Tensor]
Data = tuple[Part, list[Part]]  # the source, and the domains


def table(load: Callable[[], object], seed: int) -> Data:
    """A data set of scikit-learn, one half as the source, the other half shifted."""
    found, random = load(), np.random.default_rng(seed)
    columns = (found.data - found.data.mean(0)) / found.data.std(0)  # type: ignore[attr-defined]
    labels, width = found.target, columns.shape[1]  # type: ignore[attr-defined]
    source, target = np.array_split(random.permutation(len(columns)), 2)

    def domain() -> Part:
        rows = random.choice(target, SAMPLES)
        scale, move = np.exp(random.normal(0, 0.35, width)), random.normal(0, 0.9, width)
        noise = random.normal(0, 0.2, (SAMPLES, width))
        return _part(columns[rows] * scale + move + noise, labels[rows])

    return _part(columns[source], labels[source]), [domain() for _ in range(DOMAINS)]


def tokens(seed: int) -> Data:
    """Texts of token ids, with other words for the same classes in each domain."""
    random = np.random.default_rng(seed)
    words = random.dirichlet(np.full(WORDS, 0.08), CLASSES)

    def texts(count: int, chances: np.ndarray) -> Part:
        labels = random.integers(CLASSES, size=count)
        drawn = np.stack([random.choice(WORDS, LENGTH, p=chances[label]) for label in labels])
        return torch.from_numpy(drawn), torch.from_numpy(labels)

    def domain() -> Part:
        order, moved = np.arange(WORDS), random.permutation(WORDS)[:MOVED]
        order[moved] = random.permutation(moved)
        return texts(SAMPLES, words[:, order])

    return texts(600, words), [domain() for _ in range(DOMAINS)]


def _part(inputs: np.ndarray, labels: np.ndarray) -> Part:
    return torch.from_numpy(inputs).float(), torch.from_numpy(labels).long()


class BagOfWords(nn.Module):
    """The mean of word embeddings, and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 16)
        self.hidden = nn.Linear(16, 32)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.hidden(self.words(inputs).mean(dim=1)).relu())
        return logits


def mlp(inputs: int, classes: int, norm: Callable[[int], nn.Module]) -> nn.Module:
    """Two hidden layers of 32."""
    first, second = nn.Linear(inputs, 32), nn.Linear(32, 32)
    head = nn.Linear(32, classes)
    return nn.Sequential(first, norm(32), nn.ReLU(), second, norm(32), nn.ReLU(), head)


TASKS: dict[str, tuple[Callable[[int], Data], Callable[[], nn.Module]]] = {
    "wine, no norm layers": (lambda seed: table(load_wine, seed), lambda: mlp(13, 3, nn.Identity)),
    "breast cancer, BatchNorm": (
        lambda seed: table(load_breast_cancer, seed),
        lambda: mlp(30, 2, nn.BatchNorm1d),
    ),
    "breast cancer, LayerNorm": (
        lambda seed: table(load_breast_cancer, seed),
        lambda: mlp(30, 2, nn.LayerNorm),
    ),
    "token ids": (tokens, BagOfWords),
}


def before(lr: float) -> Callable[[nn.Module, int], BaseMethod]:
    """SimATTA as its defaults were, with some learning rate."""
    return lambda model, seed: SimATTA(
        model,
        selector=_selector(seed),
        trainer=BalancedTrainer(lr=lr, seed=seed),
        trainable="all",
        norm="frozen",
        seed=seed,
    )


METHODS: dict[str, Callable[[nn.Module, int], BaseMethod]] = {
    "source only": lambda model, _seed: SourceOnly(model),
    "batch norm": lambda model, _seed: BatchNorm(model),
    "before, lr 1e-3": before(1e-3),
    "before, lr 1e-2": before(1e-2),
    "SimATTA": lambda model, seed: SimATTA(model, selector=_selector(seed), seed=seed),
}


def _selector(seed: int) -> IncrementalClustering:
    return IncrementalClustering(cluster_growth=5, seed=seed)


def train(model: nn.Module, source: Part) -> nn.Module:
    """Train a source model for 60 epochs."""
    optimizer = torch.optim.Adam(model.train().parameters(), lr=3e-3)
    for _ in range(60):
        for rows in torch.randperm(len(source[0])).split(32):
            if len(rows) > 1:  # BatchNorm takes no single row
                optimizer.zero_grad()
                F.cross_entropy(model(source[0][rows]), source[1][rows]).backward()
                optimizer.step()
    return model.eval()


def accuracy(method: BaseMethod, domains: list[Part]) -> float:
    """Percent of right answers along the stream."""
    truth: dict[str, int] = {}
    batches = []
    for number, (inputs, labels) in enumerate(domains):
        for start in range(0, SAMPLES, BATCH):
            places = range(start, start + BATCH)
            names = [f"{number}-{place}" for place in places]
            truth.update(zip(names, labels[list(places)].tolist(), strict=True))
            batches.append((names, inputs[list(places)]))
    right = 0
    for batch, prediction in adapt(
        method, batches, lambda name, _input: truth[name], budget=Budget(LABELS)
    ):
        given = prediction.logits.argmax(dim=1).tolist()
        right += sum(truth[name] == label for name, label in zip(batch.samples, given, strict=True))
    return 100 * right / len(truth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    print(f"| model | {' | '.join(METHODS)} |\n|---|{'---:|' * len(METHODS)}", flush=True)
    for name, (load, build) in TASKS.items():
        found: dict[str, list[float]] = {method: [] for method in METHODS}
        for seed in seeds:
            source, domains = load(seed)
            with seeded(seed, "small model"):
                model = train(build(), source)
            for method, make in METHODS.items():
                found[method].append(accuracy(make(model, seed), domains))
        cells = " | ".join(f"{statistics.fmean(each):.1f}" for each in found.values())
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
