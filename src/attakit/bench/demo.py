"""The demo: several methods on a shifted stream of digits, over several seeds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attakit.bench.matching import match_labels
from attakit.bench.run import run_experiment
from attakit.build.data import load_task
from attakit.build.demo_methods import DEMO_METHODS
from attakit.build.models import TrainingCallback, digits_model
from attakit.processes.pool import run_in_processes
from attakit.settings.experiment import StreamTable
from attakit.settings.load import parse_experiment

_Job = tuple[Sequence[str], int, Path, float]  # methods in their order, seed, folder, share

BUDGET = 150
SEEDS = (0, 1, 2)


def _demo_folder(folder: Path, label: str, seed: int) -> Path:
    """Return the results folder of one run of the demo."""
    return folder / f"{label.replace(' ', '-')}-{seed}"


def demo_folders(folder: Path, seeds: Sequence[int]) -> list[Path]:
    """Return the results folders of all runs of a demo."""
    return [_demo_folder(folder, label, seed) for label in DEMO_METHODS for seed in seeds]


def prepare_demo(progress: TrainingCallback | None = None) -> None:
    """Train the source model, unless it is cached."""
    digits_model(load_task(StreamTable()), progress)


def run_demo(
    folder: Path,
    seeds: Sequence[int] = SEEDS,
    *,
    share: float = 1.0,
    progress: Callable[[str], None] = lambda _name: None,
) -> dict[str, dict[str, float]]:
    """Run every method with every seed, in parallel if there are cores, and summarise.

    Earlier results in the folder are replaced. The source model is the same for all. `progress` is
    called with the name of each finished run.
    """
    prepare_demo()
    chains = [("simatta", "random labels"), ("source only", "batch norm", "tent", "anchor head")]
    jobs: list[_Job] = [(chain, seed, folder, share) for chain in chains for seed in seeds]
    ends: dict[str, list[dict[str, Any]]] = {label: [] for label in DEMO_METHODS}

    def note(_job: _Job, found: dict[str, dict[str, Any]]) -> None:
        for label, end in found.items():
            ends[label].append(end)
            progress(label)

    run_in_processes(
        _run_chain,
        jobs,
        on_result=note,
        advice="Start the demo again, or use a part of the stream with --share.",
    )
    return {label: _mean(found) for label, found in ends.items()}


def _run_chain(job: _Job) -> dict[str, dict[str, Any]]:
    chain, seed, folder, share = job
    ends: dict[str, dict[str, Any]] = {}
    for label in chain:
        tables = {
            "seed": seed,
            "threads": 1,
            "stream": {"share": share},
            "method": {**DEMO_METHODS[label], "label": label},
            "labels": {"budget": BUDGET},
            "report": {"folder": str(_demo_folder(folder, label, seed)), "source_every": 5},
        }
        experiment = parse_experiment(tables)
        if label == "random labels":
            experiment = match_labels(experiment, ends["simatta"]["labels"])
        ends[label] = run_experiment(experiment, replace=True)
    return ends


def _mean(ends: list[dict[str, Any]]) -> dict[str, float]:
    keys = ("stream_accuracy", "source_accuracy", "labels", "seconds")
    return {key: statistics.fmean(end[key] for end in ends) for key in keys}
