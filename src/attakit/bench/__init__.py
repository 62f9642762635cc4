"""Run experiments and suites."""

from attakit.bench.run import run_experiment
from attakit.bench.suites.cells import Cell, expand
from attakit.bench.suites.grid import Grid
from attakit.bench.suites.local_executor import LocalExecutor
from attakit.bench.suites.sources import prepare_sources

__all__ = [
    "Cell",
    "Grid",
    "LocalExecutor",
    "expand",
    "prepare_sources",
    "run_experiment",
]
