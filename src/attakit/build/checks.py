"""Check an experiment as far as possible before data and models are loaded."""

from __future__ import annotations

from attakit.build.data import check_stream
from attakit.build.imported import check_builder, is_import_path
from attakit.build.methods import check_method_table, check_pool
from attakit.settings.experiment import Experiment


def check_experiment(experiment: Experiment) -> None:
    """Raise `SettingError` for a wrong name or setting, before anything slow begins.

    >>> from attakit.settings.load import parse_experiment
    >>> check_experiment(parse_experiment({"method": {"name": "os:system"}}))
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: The method 'os:system' must be a class with predict, step, learn,
    state_dict, load_state_dict, but it is a builtin_function_or_method.
    """
    check_stream(experiment.stream)
    if is_import_path(experiment.model.name):
        check_builder(experiment.model.name)
    if experiment.pool is not None:
        check_pool(experiment, experiment.pool)
    else:
        check_method_table(experiment.method)
