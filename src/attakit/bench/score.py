"""Accuracy of a method on labelled samples, without letting it learn from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from attakit.protocols import Method
from attakit.queries import SampleId
from attakit.randomness import generator
from attakit.report.accuracy import percent
from attakit.stream.samples import Domains, Samples

SCORE_BATCH = 100

Done = Callable[[int], None]
Scoring = Callable[[int, int], None]  # samples done, samples in all


def right_answers(
    method: Method, samples: Samples, done: Done = lambda _count: None
) -> dict[SampleId, bool]:
    """Which samples the method, as it is now, puts in the right class.

    `done` is told how many more samples were scored.
    """
    right: dict[SampleId, bool] = {}
    # Shuffled: a batch of one class would spoil methods that use the statistics of the batch.
    order = generator(0, "score").permutation(len(samples)).tolist()
    for start in range(0, len(samples), SCORE_BATCH):
        places = order[start : start + SCORE_BATCH]
        given = method.predict(samples.load(places)).logits.argmax(dim=1).tolist()
        for place, label in zip(places, given, strict=True):
            right[samples.names[place]] = label == samples.labels[place]
        done(len(places))
    return right


def percent_right(
    right: Mapping[SampleId, bool], *, without: Set[SampleId] = frozenset()
) -> float | None:
    """Percent of right answers, some samples left out; None where no sample is left.

    >>> percent_right({SampleId("a"): True, SampleId("b"): False}, without={SampleId("b")})
    100.0
    """
    counted = [is_right for sample, is_right in right.items() if sample not in without]
    return percent((sum(counted), len(counted)))


def sample_accuracy(method: Method, samples: Samples) -> float:
    """Percent of samples that the method, as it is now, puts in the right class."""
    return together_accuracy(method, [samples])


def together_accuracy(method: Method, sets: Sequence[Samples]) -> float:
    """Percent of right answers on several sets of samples, every sample counting the same."""
    right = [is_right for part in sets for is_right in right_answers(method, part).values()]
    return 100 * sum(right) / len(right)


def score_domains(
    method: Method, domains: Domains, scoring: Scoring = lambda _done, _total: None
) -> dict[str, dict[SampleId, bool]]:
    """Which samples of every whole domain are answered rightly after the stream."""
    total = sum(len(part) for part in domains.parts.values())
    counts: list[int] = []

    def done(count: int) -> None:
        counts.append(count)
        scoring(sum(counts), total)

    return {name: right_answers(method, part, done) for name, part in domains.parts.items()}


def post_adaptation(
    method: Method, domains: Domains, scoring: Scoring = lambda _done, _total: None
) -> dict[str, float | None]:
    """Accuracy on every whole domain after the stream, the labelled samples included."""
    scored = score_domains(method, domains, scoring)
    return {name: percent_right(right) for name, right in scored.items()}
