"""Give two methods the same number of labels, so that only their use is compared."""

from __future__ import annotations

from attakit.errors import SettingError
from attakit.settings.experiment import Experiment
from attakit.settings.load import apply_overrides, parse_experiment
from attakit.stream.batches import Stream


def match_labels(experiment: Experiment, labels: int) -> Experiment:
    """Return the experiment with this many random questions, evenly over its stream.

    Its method must take a selector, like `simatta` and `enhanced`. The selector is replaced.
    """
    tables = experiment.model_dump(mode="json", exclude_unset=True)
    overrides = ['method.selector={name = "uniform"}', f"labels.matched={labels}"]
    return parse_experiment(apply_overrides(tables, overrides))


def check_matched(experiment: Experiment, stream: Stream) -> None:
    """Raise `SettingError` if an experiment should get more labels than its stream has samples."""
    labels, samples = experiment.labels.matched or 0, stream.sample_count
    if labels > samples:
        raise SettingError(
            f"match: the other method got {labels:,} labels, but this stream has only {samples:,} "
            "samples to ask about. Use the same stream for both, or a smaller labels.budget."
        )
