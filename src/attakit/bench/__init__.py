"""Experiments: what one run is, and running it."""

from attakit.bench.experiment import Experiment
from attakit.bench.load import load_experiment, parse_experiment
from attakit.bench.run import run_experiment
from attakit.bench.stopping import Interrupted

__all__ = [
    "Experiment",
    "Interrupted",
    "load_experiment",
    "parse_experiment",
    "run_experiment",
]
