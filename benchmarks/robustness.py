"""How robust the anchor head is: small batches, wrong labels, and other settings.

    python benchmarks/robustness.py --seeds 10 11 12                    # all parts
    python benchmarks/robustness.py --parts batches noise --seeds 20 21 22
    python benchmarks/robustness.py --parts grid --data abalone names

Prints a Markdown table for each part. "batches" and "noise" run on digits, domain after domain:
batches of 1 against batches of 100, and 10 % wrong labels against none. "grid" changes one setting
at a time, on digits, on the rows and texts of experiments/rows, and on the tables and token ids of
`simatta_small_models.py`. It shows how far the defaults are from the best of the grid. Accuracy on
the stream, mean over seeds.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import simatta_small_models as small
import torch
from many_labels import accuracy

from attakit.methods import AnchorHead
from attakit.nn.seeding import seeded
from attakit.settings.suite import load_suite

ROWS = Path(__file__).resolve().parent.parent / "experiments" / "rows"
BUDGET = 184
ROWS_BUDGET = 150
GRID: dict[str, dict[str, Any]] = {
    "defaults": {},
    "penalty 1/36": {"penalty": 1 / 36},
    "penalty 1/576": {"penalty": 1 / 576},
    "hedge 0": {"hedge": 0.0},
    "hedge 0.6": {"hedge": 0.6},
    "smoothing 0": {"smoothing": 0.0},
    "smoothing 1.5": {"smoothing": 1.5},
    "share 0.4": {"source_share": 0.4},
    "share 0.8": {"source_share": 0.8},
    "no competing": {"competing": False},
}

DATA = ("digits", "abalone", "names", "small")

Run = Callable[[dict[str, Any], int], float]  # settings and seed to accuracy


def on_digits(settings: dict[str, Any], seed: int, **changes: Any) -> float:
    """Accuracy along the digits, domain after domain."""
    method = {"name": "anchor_head", **settings}
    return accuracy(method, "domain_after_domain", BUDGET, seed, **changes)[0]


def on_rows(name: str) -> Run:
    """Accuracy along a set of experiments/rows, with the stream and the model of its suite."""
    base = load_suite(ROWS / f"{name}.toml", []).base

    def run(settings: dict[str, Any], seed: int) -> float:
        method = {"name": "anchor_head", **settings}
        return accuracy(method, "domain_after_domain", ROWS_BUDGET, seed, other=base)[0]

    return run


def on_small(name: str) -> Run:
    """Accuracy along one of the streams of small models."""

    def run(settings: dict[str, Any], seed: int) -> float:
        load, build = small.TASKS[name]
        source, domains = load(seed)
        with seeded(seed, "small model"):
            model = small.train(build(), source)
        return small.accuracy(AnchorHead(model, seed=seed, **settings), domains)

    return run


def compare(title: str, rows: dict[str, Callable[[int], float]], seeds: Sequence[int]) -> None:
    """Print one row for each variant, with its difference to the first, paired by seed."""
    print(f"\n{title}, seeds {', '.join(map(str, seeds))}\n")
    print("| variant | stream | difference |\n|---|---:|---:|", flush=True)
    first: list[float] = []
    for name, run in rows.items():
        found = [run(seed) for seed in seeds]
        first = first or found
        gaps = [one - other for one, other in zip(found, first, strict=True)]
        print(
            f"| {name} | {statistics.fmean(found):.1f} ± {statistics.pstdev(found):.1f} "
            f"| {statistics.fmean(gaps):+.1f} ± {statistics.pstdev(gaps):.1f} |",
            flush=True,
        )


def batches(seeds: Sequence[int]) -> None:
    sizes = (100, 10, 1)
    rows = {f"batches of {n}": lambda seed, n=n: on_digits({}, seed, batch_size=n) for n in sizes}
    compare("Small batches, digits", rows, seeds)


def noise(seeds: Sequence[int]) -> None:
    rows = {
        f"{share:.0%} wrong": lambda seed, share=share: on_digits({}, seed, noise=share)
        for share in (0.0, 0.1)
    }
    compare("Wrong labels, digits", rows, seeds)


def grid(seeds: Sequence[int], data: Sequence[str] = DATA) -> None:
    """One table for all data: a column each, and the distance of the defaults from the best."""
    runs: dict[str, Run] = {}
    for name in data:
        if name == "small":
            runs.update({task: on_small(task) for task in small.TASKS})
        else:
            runs[name] = on_digits if name == "digits" else on_rows(name)
    print(f"\nOther settings, seeds {', '.join(map(str, seeds))}\n")
    print(f"| settings | {' | '.join(runs)} |\n|---|{'---:|' * len(runs)}", flush=True)
    found: dict[str, list[float]] = {name: [] for name in runs}
    for label, settings in GRID.items():
        for name, run in runs.items():
            found[name].append(statistics.fmean(run(settings, seed) for seed in seeds))
        print(
            f"| {label} | {' | '.join(f'{each[-1]:.1f}' for each in found.values())} |", flush=True
        )
    behind = [f"{max(each) - each[0]:.1f}" for each in found.values()]
    print(f"| defaults below the best | {' | '.join(behind)} |")


PARTS: dict[str, Callable[..., None]] = {
    "batches": batches,
    "noise": noise,
    "grid": grid,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=[*PARTS])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    parser.add_argument("--data", choices=DATA, nargs="+", default=[*DATA], help="of the grid")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for part in options.parts:
        PARTS[part](options.seeds, *([options.data] if part == "grid" else []))


if __name__ == "__main__":
    main()
