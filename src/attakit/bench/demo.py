"""The demo: five ways to meet a shifted stream of digits, over several seeds."""

from __future__ import annotations

import multiprocessing
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from attakit.bench.data import load_task
from attakit.bench.experiment import Experiment, StreamTable
from attakit.bench.load import parse_experiment
from attakit.bench.matching import match_labels
from attakit.bench.models import Progress, digits_model
from attakit.bench.run import run_experiment
from attakit.bench.stopping import ignoring_ctrl_c
from attakit.errors import AttaError

BUDGET = 150
LR = 2e-3  # as in experiments/digits
SEEDS = (0, 1, 2)
METHODS: dict[str, dict[str, Any]] = {
    "source only": {"name": "source_only"},
    "batch norm": {"name": "batch_norm"},
    "tent": {"name": "tent"},
    "simatta": {
        "name": "simatta",
        "selector": {"name": "incremental", "cluster_growth": 4},
        "trainer": {"lr": LR},
    },
    # SimATTA in all but the choice of samples: the control for "is asking cleverly worth it?"
    "random labels": {
        "name": "simatta",
        "high_entropy_bound": 0.0,
        "include_bound": True,
        "selector": {"name": "uniform"},
        "trainer": {"lr": LR},
    },
}


def demo_experiment(label: str, seed: int, folder: Path, *, share: float = 1.0) -> Experiment:
    """One run of the demo."""
    return parse_experiment(
        {
            "seed": seed,
            "threads": 1,
            "stream": {"share": share},
            "method": {**METHODS[label], "label": label},
            "labels": {"budget": BUDGET},
            "report": {"folder": str(run_folder(folder, label, seed)), "source_every": 5},
        }
    )


def run_folder(folder: Path, label: str, seed: int) -> Path:
    """Where one run of the demo keeps its results."""
    return folder / f"{label.replace(' ', '-')}-{seed}"


def run_folders(folder: Path, seeds: Sequence[int]) -> list[Path]:
    """Where all runs of a demo keep their results."""
    return [run_folder(folder, label, seed) for label in METHODS for seed in seeds]


def run_count(seeds: Sequence[int]) -> int:
    """How many runs a demo has."""
    return len(METHODS) * len(seeds)


def prepare_demo(progress: Progress | None = None) -> None:
    """Train the source model, if it is not there from an earlier time."""
    digits_model(load_task(StreamTable()), progress)


def run_demo(
    folder: Path,
    seeds: Sequence[int] = SEEDS,
    *,
    share: float = 1.0,
    progress: Callable[[str], None] = lambda _name: None,
) -> dict[str, dict[str, float]]:
    """Run every method with every seed, side by side where there are cores, and summarise.

    Parameters
    ----------
    folder
        Where the runs go; earlier results there are replaced.
    seeds
        Of stream order and random choices. The source model is the same for all.
    share
        Part of the stream to use, for a quicker look.
    progress
        Called with the name of each run that is finished.
    """
    prepare_demo()
    chains = [("simatta", "random labels"), ("source only", "batch norm", "tent")]
    jobs = [(chain, seed) for chain in chains for seed in seeds]
    ends: dict[str, list[dict[str, Any]]] = {label: [] for label in METHODS}
    # One thread each: on a model this small, two processes beat two threads.
    workers = min(len(jobs), max(1, (os.cpu_count() or 1)))
    with _processes(workers) as pool:
        with ignoring_ctrl_c():  # processes inherit this: only the first one answers the user
            left = {pool.submit(_run_chain, *job, folder, share) for job in jobs}
        while left:
            finished, left = wait(left, return_when=FIRST_COMPLETED)
            for job in finished:
                for label, end in _result(job).items():
                    ends[label].append(end)
                    progress(label)
    return {label: _mean(found) for label, found in ends.items()}


def _result(job: Future[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    try:
        return job.result()
    except BrokenProcessPool as error:
        raise AttaError(
            "A process of the demo was killed from outside, perhaps because memory ran out. Close "
            "other programs and start the demo again, or take a part of the stream with --share."
        ) from error


@contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool that ends at once after Ctrl-C or an error, instead of doing all that was asked."""
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - before:
                child.kill()
            raise


def _run_chain(
    chain: Sequence[str], seed: int, folder: Path, share: float
) -> dict[str, dict[str, Any]]:
    torch.set_num_threads(1)
    ends: dict[str, dict[str, Any]] = {}
    for label in chain:
        experiment = demo_experiment(label, seed, folder, share=share)
        if label == "random labels":
            experiment = match_labels(experiment, ends["simatta"]["labels"])
        ends[label] = run_experiment(experiment, replace=True)
    return ends


def _mean(ends: list[dict[str, Any]]) -> dict[str, float]:
    keys = ("stream_accuracy", "source_accuracy", "labels", "seconds")
    return {key: statistics.fmean(end[key] for end in ends) for key in keys}
