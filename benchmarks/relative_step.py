"""How far SimATTA's trainer should move the weights in one update.

    python benchmarks/relative_step.py --model mobilenetv2_100 \\
        --weights checkpoints/pacs-photo-mobilenetv2.safetensors

Runs SimATTA with several step sizes on tuning data: a third of PACS, domain after domain, 92
labels. A step size is relative to the typical weight of a tensor (`attakit.train.relative`). Prints
a Markdown table: accuracy on the stream and lowest accuracy on held-out photos, means over seeds.
"""

from __future__ import annotations

import argparse
import statistics
from unittest import mock

import torch
from simatta_defaults import run_one

from attakit.build.data import load_task
from attakit.settings.load import parse_experiment
from attakit.train.relative import relative_adam

STREAM = {"name": "pacs", "size": 128, "share": 0.333}
EVERY = 13  # batches from one look at photos to the next


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--weights", default="checkpoints/pacs-photo-resnet18.safetensors")
    parser.add_argument("--steps", type=float, nargs="+", default=[0.005, 0.0018, 0.0006])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10])
    options = parser.parse_args()
    torch.set_num_threads(1)
    tables = {
        "stream": STREAM,
        "model": {"name": options.model, "weights": options.weights},
        "labels": {"budget": 92},
    }
    task = load_task(parse_experiment(tables).stream)
    print("| step | stream | photos, lowest |\n|---:|---:|---:|", flush=True)
    for step in options.steps:
        # "many" is out of reach, so that the step is the same for every network.
        with (
            mock.patch("attakit.train.relative.MANY", float("inf")),
            mock.patch(
                "attakit.train.distilling.relative_adam",
                lambda parameters, step=step: relative_adam(parameters, step),
            ),
        ):
            found = [
                run_one({"name": "simatta"}, task, seed, tables, source_every=EVERY)
                for seed in options.seeds
            ]
        stream = statistics.fmean(each.stream for each in found)
        lowest = statistics.fmean(each.lowest_source for each in found)
        print(f"| {step} | {stream:.1f} | {lowest:.1f} |", flush=True)


if __name__ == "__main__":
    main()
