"""Measure what each part of the anchor head adds: switch it off and run digits or letters.

    python benchmarks/ablation.py --seeds 10 11 12          # settings were tuned on these
    python benchmarks/ablation.py --seeds 20 21 22 23 24 --only "no styles"
    python benchmarks/ablation.py --data letters --seeds 20 21 22     # held out

Prints a Markdown table: accuracy on the stream for both orders, and the difference to the whole
method, each as mean ± standard deviation over seeds. Differences are paired by seed. Letters and
their source model are those of experiments/fast/suite.toml.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
from many_labels import ORDERS, accuracy, tables_of
from torch import Tensor

from attakit.methods import AnchorHead
from attakit.nn.domain_mean import DomainMean, DomainState
from attakit.nn.styles import Grouping

WHOLE = "whole method"
PARTS: dict[str, dict[str, Any]] = {
    WHOLE: {},
    "no styles": {"styles": 1},
    "share 0.6 instead of searched": {"source_share": 0.6},
    "penultimate features only": {"layers": []},
    "no centring": {},
    "no hedge": {"hedge": 0.0},
    "no smoothing": {"smoothing": 0.0},
    "no memory for smoothing": {"memory": 0},
    "no competing answers": {"competing": False},
    "no trained stages": {"train_from": 0},
    "random samples": {"selector": {"name": "uniform"}},
}


class NoCentre(DomainState):
    """A store of domain means that subtracts nothing."""

    @property
    def centre(self) -> Tensor:
        return torch.zeros_like(self.mean)


class NoCentring(DomainMean):
    """Detects new domains as usual, but does not centre features."""

    def after(self, rows: Tensor, grouping: Grouping | None = None) -> DomainState:
        state = super().after(rows, grouping)
        return NoCentre(*(getattr(state, field.name) for field in fields(state)))


def without_centring(method: AnchorHead) -> None:
    method.domain = NoCentring()


CHANGES: dict[str, Callable[[Any], None]] = {"no centring": without_centring}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=("digits", "letters"), default="digits")
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    parser.add_argument("--budget", type=int, default=184)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=[*PARTS])
    options = parser.parse_args()
    torch.set_num_threads(1)
    seeds = ", ".join(map(str, options.seeds))
    print(f"{options.data.capitalize()}, {options.budget} labels, seeds {seeds}\n")
    titles = [cell for title in ORDERS.values() for cell in (title, "difference")]
    print(f"| change | {' | '.join(titles)} |\n|---|{'---:|' * len(titles)}", flush=True)
    whole: dict[str, list[float]] = {}
    for name in dict.fromkeys((WHOLE, *options.only)):
        cells = []
        for order in ORDERS:
            settings = {"name": "anchor_head", **PARTS[name]}
            change = CHANGES.get(name)
            found = [
                accuracy(
                    settings,
                    order,
                    options.budget,
                    seed,
                    change=change,
                    other=tables_of(options.data, order, seed),
                )[0]
                for seed in options.seeds
            ]
            pairs = zip(found, whole.setdefault(order, found), strict=True)
            cells += [summary(found), summary([one - other for one, other in pairs], sign="+")]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def summary(values: list[float], sign: str = "") -> str:
    """Mean ± standard deviation."""
    mean, spread = statistics.fmean(values), statistics.pstdev(values)
    return f"{mean:{sign}.1f} ± {spread:.1f}"


if __name__ == "__main__":
    main()
