"""Experiments: what one run is, and running it; suites: what is compared, and running that."""

from attakit.bench.experiment import Experiment
from attakit.bench.load import load_experiment, parse_experiment
from attakit.bench.run import run_experiment
from attakit.bench.stopping import Interrupted
from attakit.bench.suites.cells import Cell, expand
from attakit.bench.suites.grid import Grid
from attakit.bench.suites.processes import Processes
from attakit.bench.suites.sources import prepare_sources
from attakit.bench.suites.suite import Suite, load_suite, parse_suite

__all__ = [
    "Cell",
    "Experiment",
    "Grid",
    "Interrupted",
    "Processes",
    "Suite",
    "expand",
    "load_experiment",
    "load_suite",
    "parse_experiment",
    "parse_suite",
    "prepare_sources",
    "run_experiment",
]
