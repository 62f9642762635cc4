"""The audit slice: what people said about samples that were drawn at random.

The method never sees these samples, so they judge every model alike.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from attakit.errors import StreamError
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.nn.entropy import softmax_entropy
from attakit.service.storage.storage import Storage

log = logging.getLogger(__name__)

Decode = Callable[[bytes], Tensor]

SURE_SHARE = 0.25  # of the audit samples: those about which the source model is surest
_CHUNK = 100


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share, or a difference of shares, measured on some samples, with its interval."""

    value: float
    low: float
    high: float
    count: int


def estimate(right: int, count: int, confidence: float) -> Estimate:
    """A share with Wilson's score interval.

    >>> found = estimate(right=8, count=10, confidence=0.95)
    >>> round(found.low, 3), round(found.high, 3)
    (0.49, 0.943)
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = right / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    half /= 1 + z * z / count
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half), count)


def served_accuracy(storage: Storage, window: int, confidence: float) -> Estimate | None:
    """How often what was really answered to requests was right; None without audit answers."""
    questions = storage.questions.audited(window)
    guesses = storage.samples.guesses([question.sample for question in questions])
    found = [(one.label, guesses[one.sample]) for one in questions if one.sample in guesses]
    if not found:
        return None
    return estimate(sum(label == guess for label, guess in found), len(found), confidence)


@dataclass(frozen=True, slots=True)
class AuditSample:
    """One sample of the audit slice."""

    sample: str
    label: int | None  # None: people say it is of no class, so every guess is wrong
    settled: float


class Audit:
    """The newest audit samples whose contents are kept, and what models say about them.

    The newest `window` answers count.
    """

    def __init__(self, storage: Storage, decode: Decode, window: int) -> None:
        self._storage = storage
        self._decode = decode
        self._window = window
        self._inputs: dict[str, Tensor] = {}
        self._guesses: dict[int, dict[str, tuple[int, float]]] = {}  # by version and sample

    def samples(self) -> tuple[AuditSample, ...]:
        """The audit slice as it is now, newest first."""
        questions = self._storage.questions.audited(self._window)
        names = [question.sample for question in questions]
        self._read([name for name in names if name not in self._inputs])
        self._inputs = {name: self._inputs[name] for name in names if name in self._inputs}
        return tuple(
            AuditSample(one.sample, one.label, one.settled or 0.0)
            for one in questions
            if one.sample in self._inputs
        )

    def evaluate(
        self, version: int, model: Classifier, samples: Sequence[AuditSample]
    ) -> tuple[list[int], list[float]]:
        """The classes a version predicts for some samples, and the entropy of each prediction."""
        old = self._guesses.get(version, {})
        known = {name: seen for name, seen in old.items() if name in self._inputs}
        new = [one.sample for one in samples if one.sample not in known]
        for at in range(0, len(new), _CHUNK):
            part = new[at : at + _CHUNK]
            inputs = torch.stack([self._inputs[name] for name in part])
            known.update(zip(part, _judge(model, inputs), strict=True))
        self._guesses[version] = known
        found = [known[one.sample] for one in samples]
        return [guess for guess, _ in found], [entropy for _, entropy in found]

    def drop(self, keep: Sequence[int]) -> None:
        """Remember what these versions said, and no others."""
        self._guesses = {version: self._guesses.get(version, {}) for version in keep}

    def _read(self, names: Sequence[str]) -> None:
        contents = self._storage.samples.contents(names) if names else {}
        for name, content in contents.items():
            try:
                self._inputs[name] = self._decode(content)
            except StreamError as error:  # it was good for the settings of another time
                log.warning("Audit sample %s is left out: %s", name, error)


def _judge(model: Classifier, inputs: Tensor) -> list[tuple[int, float]]:
    with torch.no_grad():
        logits = model(place(inputs, model.device)).logits
    return list(zip(logits.argmax(dim=1).tolist(), softmax_entropy(logits).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Trust:
    """How often people agree with the source model on the samples it is surest about."""

    share: float
    beyond_chance: float  # lower bound of the share, scaled: 0 is chance, 1 is full agreement
    count: int


def trust(
    labels: Sequence[int | None],
    guesses: Sequence[int],
    entropies: Sequence[float],
    classes: int,
    confidence: float,
) -> Trust:
    """How far people can be trusted, judged by the samples that the source model is surest about.

    Somebody who answers at random agrees with it by chance: with two classes, on every second
    sample, and on few samples more often by luck. So the lower end of the interval is compared with
    chance (Bennett, Alpert and Goldstein's S of 1954). Chance is the same for all classes, unlike
    in Cohen's kappa: where nearly all samples have one class, honest people could hardly beat that.

    >>> trust([1, 0] * 10, [1, 0] * 10, [0.1] * 20, classes=2, confidence=0.9).beyond_chance > 0.5
    True
    >>> trust([1, 0] * 10, [1, 1] * 10, [0.1] * 20, classes=2, confidence=0.9).beyond_chance
    0.0
    """
    count = math.ceil(len(labels) * SURE_SHARE)
    if count == 0:
        return Trust(0.0, 0.0, 0)
    surest = sorted(range(len(labels)), key=lambda at: (entropies[at], at))[:count]
    agreed = sum(labels[at] == guesses[at] for at in surest)
    low = estimate(agreed, count, 2 * confidence - 1).low  # a bound on one side
    return Trust(agreed / count, max(0.0, (low - 1 / classes) / (1 - 1 / classes)), count)
