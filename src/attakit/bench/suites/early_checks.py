"""What can be known to be wrong with a cell before anything is run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attakit.bench.matching import match_labels
from attakit.build.methods import check_method_table
from attakit.build.pools import check_pool
from attakit.errors import SettingError
from attakit.settings.experiment import Experiment


@contextmanager
def complaining_of(who: str) -> Iterator[None]:
    """Put in front of a complaint about a setting whose it is."""
    try:
        yield
    except SettingError as error:
        raise type(error)(f"{who}: {error}") from error


def check_parts(experiment: Experiment, *, is_matched: bool) -> None:
    """Raise `SettingError` where the method or the pool of a cell cannot be.

    Parameters
    ----------
    experiment
        What will be run.
    is_matched
        Whether it will ask about random samples, which only a method that takes a selector can.
    """
    if experiment.pool is not None:
        if is_matched:
            raise SettingError("a pool asks in rounds, so it cannot be matched. Leave out match.")
        check_pool(experiment, experiment.pool)
        return
    check_method_table(experiment.method)
    if is_matched:
        with complaining_of("match lets a method ask at random, so it must take a selector"):
            check_method_table(match_labels(experiment, 0).method)
