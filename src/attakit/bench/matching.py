"""As many labels as another run had: the control for "is asking cleverly worth it?"."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from attakit.bench.data import build_stream, load_task
from attakit.bench.experiment import Experiment
from attakit.bench.load import parse_experiment


def even_counts(labels: int, batch_sizes: Sequence[int]) -> list[int]:
    """How many labels each batch gets when they are spread evenly over the samples.

    >>> even_counts(5, [4, 4, 2])
    [2, 2, 1]
    """
    seen = [0, *accumulate(batch_sizes)]
    due = [labels * count // max(1, seen[-1]) for count in seen]
    return [after - before for before, after in pairwise(due)]


def match_labels(experiment: Experiment, labels: int) -> Experiment:
    """The experiment with so many labels, spread evenly over the samples of its stream."""
    stream = build_stream(experiment, load_task(experiment.stream))
    samples, size = len(stream.truth.labels), stream.batch_size
    sizes = [min(size, samples - start) for start in range(0, samples, size)]
    tables = experiment.model_dump(mode="json", exclude_unset=True)
    method = tables.setdefault("method", {})
    given = method.get("selector", {})
    selector = {"name": given} if isinstance(given, str) else given
    method["selector"] = {"name": "uniform", **selector, "counts": even_counts(labels, sizes)}
    return parse_experiment(tables)
