"""The same number of labels for two methods, so that what is compared is what they do with them."""

from __future__ import annotations

from attakit.settings.experiment import Experiment
from attakit.settings.load import apply_overrides, parse_experiment


def match_labels(experiment: Experiment, labels: int) -> Experiment:
    """The experiment with this many questions about random samples, evenly over its stream.

    Parameters
    ----------
    experiment
        Its method must take a selector, as `simatta` and `enhanced` do; the one it has is
        replaced.
    labels
        For example as many as another method used.
    """
    tables = experiment.model_dump(mode="json", exclude_unset=True)
    overrides = ['method.selector={name = "uniform"}', f"labels.matched={labels}"]
    return parse_experiment(apply_overrides(tables, overrides))
