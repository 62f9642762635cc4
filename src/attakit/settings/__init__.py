"""Settings files: TOML tables and overrides, checked and turned into typed settings. No torch."""

from attakit.settings.experiment import Experiment
from attakit.settings.load import load_experiment, load_service, parse_experiment, parse_service
from attakit.settings.service import ServiceSettings
from attakit.settings.suite import Suite, load_suite, parse_suite

__all__ = [
    "Experiment",
    "ServiceSettings",
    "Suite",
    "load_experiment",
    "load_service",
    "load_suite",
    "parse_experiment",
    "parse_service",
    "parse_suite",
]
