"""Accuracy of a method on labelled samples, without letting it learn from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attakit.protocols import Method
from attakit.randomness import generator
from attakit.stream.samples import Domains, Samples

SCORE_BATCH = 100

Done = Callable[[int], None]
Scoring = Callable[[int, int], None]  # samples done, samples in all


def sample_accuracy(method: Method, samples: Samples, done: Done = lambda _count: None) -> float:
    """Percent of samples that the method, as it is now, puts in the right class.

    `done` is told how many more samples were scored.
    """
    correct = 0
    # Shuffled: a batch of one class would spoil methods that use the statistics of the batch.
    order = generator(0, "score").permutation(len(samples)).tolist()
    for start in range(0, len(samples), SCORE_BATCH):
        places = order[start : start + SCORE_BATCH]
        given = method.predict(samples.load(places)).logits.argmax(dim=1).cpu().numpy()
        correct += int(np.sum(given == np.asarray(samples.labels)[places]))
        done(len(places))
    return 100 * correct / len(samples)


def post_adaptation(
    method: Method, domains: Domains, scoring: Scoring = lambda _done, _total: None
) -> dict[str, float]:
    """Accuracy on every whole domain after the stream, the labelled samples included."""
    total = sum(len(part) for part in domains.parts.values())
    counts: list[int] = []

    def done(count: int) -> None:
        counts.append(count)
        scoring(sum(counts), total)

    return {name: sample_accuracy(method, part, done) for name, part in domains.parts.items()}
