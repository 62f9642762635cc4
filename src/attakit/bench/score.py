"""Accuracy of a method on labelled samples, without learning from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from attakit.build.task import ProgressCallback, Task, no_progress
from attakit.nn.batched import predict_in_batches
from attakit.protocols import Method
from attakit.queries import SampleId
from attakit.randomness import generator
from attakit.report.accuracy import percent
from attakit.stream.samples import Samples

SCORE_BATCH = 100

ScoredCallback = Callable[[int], None]
Right = Mapping[SampleId, bool]  # True if the answer about a sample is right


def right_answers(
    method: Method, samples: Samples, done: ScoredCallback = lambda _count: None
) -> Right:
    """Return for each sample whether the method's current answer is right.

    `done` is called with the number of samples scored since the last call.
    """
    right: dict[SampleId, bool] = {}
    # Shuffled: a batch of one class would harm methods that use batch statistics.
    order = generator(0, "score").permutation(len(samples)).tolist()
    for positions, prediction in predict_in_batches(method.predict, samples, order, SCORE_BATCH):
        given = prediction.logits.argmax(dim=1).tolist()
        for position, label in zip(positions, given, strict=True):
            right[samples.names[position]] = label == samples.labels[position]
        done(len(positions))
    return right


def percent_right(right: Right, *, without: Set[SampleId] = frozenset()) -> float | None:
    """Return the percentage of right answers, without some samples; None if no sample is left.

    >>> percent_right({SampleId("a"): True, SampleId("b"): False}, without={SampleId("b")})
    100.0
    """
    counted = [is_right for sample, is_right in right.items() if sample not in without]
    return percent((sum(counted), len(counted)))


@dataclass(frozen=True)
class Scores:
    """Right and wrong answers on all samples."""

    domains: Mapping[str, Right]
    held_out: Right | None  # answers on held-out source samples
    trained_on: Right | None

    def per_domain(self, *, without: Set[SampleId] = frozenset()) -> dict[str, float | None]:
        """Return the accuracy on every target domain, without some samples."""
        return {name: percent_right(right, without=without) for name, right in self.domains.items()}

    def source(self) -> dict[str, float | None]:
        """Return the accuracy on held-out source samples, and on all of them as in the paper."""
        parts = [part for part in (self.held_out, self.trained_on) if part is not None]
        together = [is_right for part in parts for is_right in part.values()]
        figures = {} if self.held_out is None else {"source_accuracy": percent_right(self.held_out)}
        if together:
            figures["source_accuracy_whole"] = percent((sum(together), len(together)))
        return figures


def score_everything(method: Method, task: Task, scoring: ProgressCallback = no_progress) -> Scores:
    """Score every target domain and all of the source."""
    sets = [*task.targets.parts.values(), task.source_test, task.source_train]
    done = _tally(scoring, sum(len(each) for each in sets if each is not None))

    def score(samples: Samples | None) -> Right | None:
        return None if samples is None else right_answers(method, samples, done)

    return Scores(
        {name: right_answers(method, part, done) for name, part in task.targets.parts.items()},
        score(task.source_test),
        score(task.source_train),
    )


def score_held_out(
    method: Method, task: Task, scoring: ProgressCallback = no_progress
) -> dict[str, float | None]:
    """Return the accuracy on held-out source samples, if there are any."""
    if task.source_test is None:
        return {}
    done = _tally(scoring, len(task.source_test))
    return {"source_accuracy": percent_right(right_answers(method, task.source_test, done))}


def _tally(scoring: ProgressCallback, total: int) -> ScoredCallback:
    counts: list[int] = []

    def done(count: int) -> None:
        counts.append(count)
        scoring(sum(counts), total)

    return done
