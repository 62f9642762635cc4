"""Compare three rules for the weight of the source-like samples (GetW in the paper).

    python benchmarks/weightings.py                              # digits, three seeds
    python benchmarks/weightings.py --share 0.1 --seeds 1        # a quick look

Runs SimATTA with w₀ = λ₀ (the paper's choice), with the corrected w₀* (the minimiser of the bound
on the target error) for several divergences A, and with fixed weights. Everything else is equal.
Prints a Markdown table. Finished runs are kept in the folder and not run again.
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

EXPERIMENT = Path(__file__).resolve().parent.parent / "experiments" / "digits" / "simatta.toml"
WEIGHTING = "method.trainer.weighting"
# `attakit analyse` says which A a run had.
RULES: dict[str, list[str]] = {
    "λ₀": [f'{WEIGHTING}.rule="share"'],
    "w₀*, A = 0.5": [f'{WEIGHTING}.rule="optimal"', f"{WEIGHTING}.divergence=0.5"],
    "w₀*, A = 1": [f'{WEIGHTING}.rule="optimal"', f"{WEIGHTING}.divergence=1.0"],
    "fixed 0.5": [f"{WEIGHTING}.rule=0.5"],
    "fixed 0.8": [f"{WEIGHTING}.rule=0.8"],
}


def run_one(place: int, name: str, seed: int, options: argparse.Namespace) -> Path:
    """Run one rule with one seed, or keep it if it is finished."""
    folder: Path = options.folder / f"{place}-{seed}"
    overrides = [
        f"seed={seed}",
        f"stream.share={options.share}",
        f'method.label="{name}"',
        f'report.folder="{folder}"',
        "report.post_adaptation=false",
        "report.pictures=false",
        "report.source_every=0",
        *RULES[name],
    ]
    experiment = load_experiment(EXPERIMENT, overrides + options.set)
    run_experiment(experiment, resume=(folder / "steps.jsonl").exists())
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, default=Path("runs/weightings"))
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.NAME=VALUE")
    options = parser.parse_args()
    folders = [
        run_one(place, name, seed, options)
        for place, name in enumerate(RULES)
        for seed in range(options.seeds)
    ]
    summaries = summarise([read_run(folder) for folder in folders])
    print(render_tables([method_table(summaries)]))


if __name__ == "__main__":
    main()
