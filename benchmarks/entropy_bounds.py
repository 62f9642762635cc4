"""Measure whether the fitted e_l comes within a point of the best fixed one.

    python benchmarks/entropy_bounds.py                                # digits, three seeds
    python benchmarks/entropy_bounds.py --data pacs --share 0.12 --seeds 1

Runs SimATTA with e_l = "auto" and with a grid of fixed values, everything else equal. Prints a
Markdown table: accuracy on the stream, on held-out source images afterwards, and labels used.
Finished runs are kept in the folder and not run again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from attakit.bench.run import run_experiment
from attakit.report.runs import read_run
from attakit.report.summaries import summarise
from attakit.report.table_forms import render_tables
from attakit.report.tables import method_table
from attakit.settings.load import load_experiment

EXPERIMENTS = Path(__file__).resolve().parent.parent / "experiments"
# Digits: a small network that is rarely sure. PACS: a ResNet that nearly always is.
GRIDS = {
    "digits": ("auto", "0.0", "0.01", "0.05", "0.2", "0.5"),
    "pacs": ("auto", "1e-4", "1e-3", "1e-2"),
}


def run_one(data: str, bound: str, seed: int, options: argparse.Namespace) -> Path:
    """Run one cell of the grid, or keep it if it is finished."""
    folder: Path = options.folder / f"{data}-{bound}-{seed}"
    value = f'"{bound}"' if bound == "auto" else bound
    overrides = [
        f"seed={seed}",
        f"stream.share={options.share}",
        f"method.low_entropy_bound={value}",
        f'method.label="e_l = {bound}"',
        f'report.folder="{folder}"',
        "report.post_adaptation=false",
        "report.pictures=false",
        "report.source_every=0",
    ]
    experiment = load_experiment(EXPERIMENTS / data / "simatta.toml", overrides + options.set)
    run_experiment(experiment, resume=(folder / "steps.jsonl").exists())
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=sorted(GRIDS), default="digits")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, default=Path("runs/bounds"))
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.NAME=VALUE")
    options = parser.parse_args()
    folders = [
        run_one(options.data, bound, seed, options)
        for bound in GRIDS[options.data]
        for seed in range(options.seeds)
    ]
    summaries = summarise([read_run(folder) for folder in folders])
    print(render_tables([method_table(summaries)]))


if __name__ == "__main__":
    main()
