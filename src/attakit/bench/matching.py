"""The same number of labels for two methods, so that what is compared is what they do with them."""

from __future__ import annotations

from attakit.errors import SettingError
from attakit.settings.experiment import Experiment
from attakit.settings.load import apply_overrides, parse_experiment
from attakit.stream.batches import Stream


def match_labels(experiment: Experiment, labels: int) -> Experiment:
    """The experiment with this many questions about random samples, evenly over its stream.

    Its method must take a selector, as `simatta` and `enhanced` do; the one it has is replaced.
    """
    tables = experiment.model_dump(mode="json", exclude_unset=True)
    overrides = ['method.selector={name = "uniform"}', f"labels.matched={labels}"]
    return parse_experiment(apply_overrides(tables, overrides))


def check_matched(experiment: Experiment, stream: Stream) -> None:
    """Raise `SettingError` if an experiment is to get more labels than its stream has samples."""
    labels, samples = experiment.labels.matched or 0, stream.sample_count
    if labels > samples:
        raise SettingError(
            f"match: the other method got {labels:,} labels, but this stream has only {samples:,} "
            f"samples to ask about. Give both the same stream, or a smaller labels.budget."
        )
