"""The same number of labels for two methods, so that what is compared is what they do with them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from attakit.build.data import build_stream, load_task
from attakit.errors import SettingError, check_count
from attakit.settings.experiment import Experiment
from attakit.settings.load import apply_overrides, parse_experiment


def even_counts(labels: int, batch_sizes: Sequence[int]) -> list[int]:
    """How many labels to ask for at each step, spread evenly over the samples of a stream.

    They add up to `labels` exactly, and no step asks about more samples than it has.

    >>> even_counts(5, [100, 100, 100, 50])
    [1, 1, 2, 1]
    """
    samples = sum(batch_sizes)
    check_count("even_counts", "labels", labels, at_least=0)
    if labels > samples:
        raise SettingError(
            f"even_counts: labels must be at most the number of samples, {samples}, got {labels}."
        )
    due = [labels * seen // max(samples, 1) for seen in accumulate(batch_sizes, initial=0)]
    return [after - before for before, after in pairwise(due)]


def match_labels(experiment: Experiment, labels: int) -> Experiment:
    """The experiment with so many questions about random samples, spread over its stream.

    Its method must take a selector, as `simatta` and `enhanced` do; the one it has is replaced.
    """
    stream = build_stream(experiment, load_task(experiment.stream))
    samples = len(stream.truth.labels)
    starts = range(0, samples, stream.batch_size)
    sizes = [min(stream.batch_size, samples - start) for start in starts]
    if labels > samples:
        raise SettingError(
            f"match: the other method got {labels:,} labels, but this stream has only {samples:,} "
            f"samples to ask about. Give both the same stream, or a smaller labels.budget."
        )
    return ask_at_steps(experiment, even_counts(labels, sizes))


def ask_at_steps(experiment: Experiment, counts: Sequence[int]) -> Experiment:
    """The experiment with so many questions about random samples at each step."""
    tables = experiment.model_dump(mode="json", exclude_unset=True)
    asking = f'method.selector={{name = "uniform", counts = {list(counts)}}}'
    return parse_experiment(apply_overrides(tables, [asking]))
