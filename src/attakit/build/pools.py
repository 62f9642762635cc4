"""Pool runs: adaptation in rounds over all targets, as the [pool] table says."""

from __future__ import annotations

from attakit.build.methods import build_selector
from attakit.errors import SettingError
from attakit.methods.pool import PoolAdaptation
from attakit.nn.classifier import Classifier
from attakit.settings.experiment import Experiment, MethodTable, PoolTable
from attakit.stream.rounds import Rounds


def build_pool(
    experiment: Experiment, table: PoolTable, stream: Rounds, model: Classifier
) -> PoolAdaptation:
    """The method of a pool run."""
    budget = experiment.labels.budget
    if budget == "unlimited":
        raise SettingError(
            "labels.budget: with a [pool] the budget must have a limit, because the rounds share "
            "it. Give a number of labels."
        )
    return PoolAdaptation(
        model,
        stream.pool,
        selector=build_selector(table.selector, experiment.seed),
        budget=budget,
        forward_batch=experiment.stream.batch_size,
        seed=experiment.seed,
        **table.model_dump(exclude={"selector", "label"}),
    )


def check_pool(experiment: Experiment, table: PoolTable) -> None:
    """Raise `SettingError` if a pool run cannot work, as far as that shows without a model."""
    if experiment.method != MethodTable():
        raise SettingError(
            "An experiment has either a [method] for a stream or a [pool]: leave one of them out."
        )
    if experiment.labels.per_1000 is not None or experiment.labels.spread_over is not None:
        raise SettingError(
            "labels: with a [pool] the rounds set the pace. Leave out per_1000 and spread_over."
        )
    build_selector(table.selector, experiment.seed)
