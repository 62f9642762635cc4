"""Compare `source_share = "auto"` with the best fixed share of the source's statistics.

    python benchmarks/source_share.py                       # digits, both stream orders
    python benchmarks/source_share.py --data pacs --model resnet18 \\
        --weights checkpoints/pacs-photo-resnet18.safetensors --shares 0.5 0.65 0.8 0.9

Runs the anchor head with several fixed shares and with "auto" on tuning data: digits, or a third of
PACS. Prints a Markdown table of accuracy on the stream, mean ± standard deviation over seeds, and
how far "auto" is from the best fixed share.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import torch
from simatta_defaults import run_one

from attakit.build.data import load_task
from attakit.settings.load import parse_experiment

SHARES = (0.1, 0.3, 0.5, 0.65, 0.8)
STREAMS: dict[str, dict[str, Any]] = {
    "digits": {"name": "digits"},
    "pacs": {"name": "pacs", "size": 128, "share": 0.333},
}
BUDGETS = {"digits": 150, "pacs": 92}


def main() -> None:
    """Print a table for each order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=STREAMS, default="digits")
    parser.add_argument("--model", default="small_cnn")
    parser.add_argument("--weights", help="of the source model; digits have their own")
    parser.add_argument("--orders", nargs="+", default=["domain_after_domain", "random"])
    parser.add_argument("--shares", type=float, nargs="+", default=[*SHARES])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    options = parser.parse_args()
    torch.set_num_threads(1)
    weights = {} if options.weights is None else {"weights": options.weights}
    for order in options.orders:
        tables: dict[str, Any] = {
            "stream": {**STREAMS[options.data], "order": order},
            "model": {"name": options.model, **weights},
            "labels": {"budget": BUDGETS[options.data]},
        }
        title = f"{options.data}, {options.model}, {order}, seeds {options.seeds}"
        print_table(title, tables, options.shares, options.seeds)


def print_table(title: str, tables: dict[str, Any], shares: list[float], seeds: list[int]) -> None:
    """Measure every share, and compare the search with the best of the others."""
    print(f"\n{title}\n\n| source_share | stream |\n|---|---:|")
    task = load_task(parse_experiment(tables).stream)
    means: dict[float | str, float] = {}
    tried: list[float | str] = [*shares, "auto"]
    for share in tried:
        method = {"name": "anchor_head", "source_share": share}
        found = [run_one(method, task, seed, tables, source_every=0).stream for seed in seeds]
        means[share] = statistics.mean(found)
        print(f"| {share} | {means[share]:.1f} ± {statistics.pstdev(found):.1f} |", flush=True)
    searched = means.pop("auto")
    best = max(means, key=means.__getitem__)
    print(f"\nauto is {searched - means[best]:+.1f} points from the best fixed share, {best}.")


if __name__ == "__main__":
    main()
