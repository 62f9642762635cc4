"""Accuracy with 10 to 1,000 labels: head alone, head with trained stages, SimATTA.

    python benchmarks/many_labels.py --seeds 10 11 12                       # tuned on these
    python benchmarks/many_labels.py --seeds 20 21 22 --figure docs/figures/many-labels.svg
    python benchmarks/many_labels.py --data pacs --seeds 10 --budgets 300 \\
        --orders domain_after_domain --kept 100000

Prints a Markdown table for each order of the stream: accuracy on the stream, mean ± standard
deviation over seeds. Target domains change places with the seed. Every method gets the same number
of labels, spread over the stream. `--figure` draws the curves. PACS is a third of it, with the
ResNet-18 of experiments/fast. Its last stages need more than the 20 kB per label that the method
stores; `--kept` lifts that limit.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import torch
from matplotlib import pyplot
from simatta_defaults import Watch

from attakit.build.data import build_stream, load_task
from attakit.build.methods import build_method
from attakit.build.models import source_classifier
from attakit.build.oracles import build_ledger, build_oracle
from attakit.engine.loop import run
from attakit.nn import tail
from attakit.report.accuracy import Accuracy
from attakit.settings.load import parse_experiment

BUDGETS = (10, 30, 100, 300, 1000)
METHODS: dict[str, dict[str, Any]] = {
    "head alone": {"name": "anchor_head", "train_from": 0},
    "with trained stages": {"name": "anchor_head"},
    "SimATTA": {"name": "simatta"},
}
ORDERS = {"domain_after_domain": "domain after domain", "random": "mixed"}
DOMAINS = ("optdigits", "outline", "textured")
OTHERS: dict[str, dict[str, Any]] = {  # sets with a source model in a file
    "letters": {
        "stream": {
            "name": "folders",
            "root": "data/letters",
            "source": "print",
            "size": 32,
            "share": 0.25,
            "rest": True,
        },
        "model": {"name": "small_cnn", "weights": "checkpoints/letters-print.safetensors"},
    },
    "pacs": {
        "stream": {"name": "pacs", "size": 128, "share": 0.333},
        "model": {"name": "resnet18", "weights": "checkpoints/pacs-photo-resnet18.safetensors"},
    },
}
TARGETS = {
    "digits": DOMAINS,
    "letters": ("italic", "photocopy", "sign"),
    "pacs": ("art_painting", "cartoon", "sketch"),
}

Curves = dict[str, list[list[float]]]  # by method: by budget: by seed


def accuracy(
    method: dict[str, Any],
    order: str,
    budget: int,
    seed: int,
    *,
    batch_size: int = 100,
    noise: float = 0.0,
    other: dict[str, Any] | None = None,
    change: Callable[[Any], None] | None = None,
) -> tuple[float, int]:
    """Return the accuracy on the stream in percent, and the number of labels.

    Parameters
    ----------
    method
        Its table in an experiment file.
    order, budget, seed, batch_size
        Settings of the stream and its labels.
    noise
        Share of wrong labels.
    other
        Tables `stream` and `model` of another set than the digits.
    change
        Changes the method before the run.
    """
    turn = seed % len(DOMAINS)
    stream_table = {
        "name": "digits",
        "order": order,
        "batch_size": batch_size,
        "targets": [*DOMAINS[turn:], *DOMAINS[:turn]],
    }
    tables = {"seed": seed, "threads": 1, "method": method, "stream": stream_table}
    if other is not None:
        tables = {**tables, **other}
    labels = {"budget": budget, "noise": noise}
    experiment = parse_experiment({**tables, "labels": labels})
    task = load_task(experiment.stream)
    stream = build_stream(experiment, task)
    made = build_method(
        experiment.method, source_classifier(experiment, task), seed, task.source_train
    )
    if change is not None:
        change(made)
    score, watch = Accuracy(stream.truth.labels), Watch(made, task, every=0)
    oracle = build_oracle(experiment.labels, stream.truth, seed)
    samples = len(stream.truth.labels)
    run(stream.batches(), made, oracle, build_ledger(experiment), [score, watch], samples=samples)
    assert score.stream is not None
    return score.stream, watch.labels


def tables_of(data: str, order: str, seed: int) -> dict[str, Any] | None:
    """Tables of another set than the digits. Target domains change places with the seed."""
    if data not in OTHERS:
        return None
    turn, names = seed % len(TARGETS[data]), TARGETS[data]
    changes = {"order": order, "targets": [*names[turn:], *names[:turn]]}
    return {**OTHERS[data], "stream": {**OTHERS[data]["stream"], **changes}}


def print_table(data: str, order: str, budgets: Sequence[int], seeds: Sequence[int]) -> Curves:
    """Run everything for one order, and print one row for each budget."""
    print(f"\n{data}, {ORDERS[order]}, seeds {', '.join(map(str, seeds))}\n")
    print(f"| labels | {' | '.join(METHODS)} |\n|---:|{'---:|' * len(METHODS)}", flush=True)
    curves: Curves = {name: [] for name in METHODS}
    for budget in budgets:
        cells = []
        for name, method in METHODS.items():
            found = [
                accuracy(method, order, budget, seed, other=tables_of(data, order, seed))
                for seed in seeds
            ]
            curves[name].append([each[0] for each in found])
            mean, spread = (
                measure([each[0] for each in found])
                for measure in (statistics.fmean, statistics.pstdev)
            )
            fewer = {each[1] for each in found} - {budget}
            note = f" ({min(fewer)} labels)" if fewer else ""
            cells.append(f"{mean:.1f} ± {spread:.1f}{note}")
        print(f"| {budget} | {' | '.join(cells)} |", flush=True)
    return curves


def draw(found: dict[str, Curves], budgets: Sequence[int], path: Path) -> None:
    """Draw the curves of all orders, side by side."""
    size = (4.2 * len(found), 3.2)
    figure, panels = pyplot.subplots(1, len(found), figsize=size, sharey=True, squeeze=False)
    for panel, (order, curves) in zip(panels[0], found.items(), strict=True):
        for name, points in curves.items():
            means = [statistics.fmean(each) for each in points]
            spreads = [statistics.pstdev(each) for each in points]
            panel.errorbar(budgets, means, yerr=spreads, label=name, marker="o", markersize=3)
        panel.set(xscale="log", xlabel="labels", title=ORDERS[order])
        panel.grid(alpha=0.3)
    figure.axes[0].set_ylabel("accuracy on the stream (%)")
    figure.axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=TARGETS, default="digits")
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    parser.add_argument("--budgets", type=int, nargs="+", default=[*BUDGETS])
    parser.add_argument("--orders", choices=ORDERS, nargs="+", default=[*ORDERS])
    parser.add_argument("--kept", type=int, default=tail.KEPT_BYTES, help="bytes per label")
    parser.add_argument("--figure", type=Path, help="file for a figure")
    options = parser.parse_args()
    torch.set_num_threads(1)
    matplotlib.use("Agg")
    tail.KEPT_BYTES = options.kept
    found = {
        order: print_table(options.data, order, options.budgets, options.seeds)
        for order in options.orders
    }
    if options.figure is not None:
        draw(found, options.budgets, options.figure)


if __name__ == "__main__":
    main()
