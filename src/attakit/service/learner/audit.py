"""The audit slice: answers about samples that were drawn at random.

The method never sees these samples, so they judge all models equally.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attakit.errors import StreamError
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.nn.entropy import softmax_entropy
from attakit.service.learner.candidates import SOURCE
from attakit.service.learner.honesty import Opinion
from attakit.service.learner.sequences import Estimate, estimate
from attakit.service.storage.storage import Storage

log = logging.getLogger(__name__)

Decode = Callable[[bytes], Tensor]

_OPINIONS = 5000  # answers used to check whether people are honest
_CHUNK = 25  # samples per part of an evaluation; other due work runs in between


@dataclass(frozen=True, slots=True)
class AuditAccuracy:
    """Accuracy of predictions on audit samples."""

    served: Estimate  # predictions that were really served
    source: Estimate | None  # the source model's predictions; None if not known for all samples

    def numbers(self) -> dict[str, float]:
        """Return the same as numbers of a turn."""
        found = {"accuracy": self.served}
        found |= {} if self.source is None else {"source_accuracy": self.source}
        return {
            f"{name}{part}": float(value)
            for name, one in found.items()
            for part, value in (
                ("", one.value),
                ("_low", one.low),
                ("_high", one.high),
                ("_count", one.count),
            )
        }


def served_accuracy(storage: Storage, window: int, confidence: float) -> AuditAccuracy | None:
    """Accuracy of served predictions and of the source model, on the same samples.

    None without audit answers.
    """
    questions = storage.questions.audited(window)
    guesses = storage.samples.guesses([question.sample for question in questions])
    found = [one for one in questions if one.sample in guesses]
    if not found:
        return None
    served = sum(one.label == guesses[one.sample] for one in found)
    known = all(one.source_guess is not None for one in found)
    source = sum(one.label == one.source_guess for one in found)
    return AuditAccuracy(
        estimate(served, len(found), confidence),
        estimate(source, len(found), confidence) if known else None,
    )


@dataclass(frozen=True, slots=True)
class AuditSample:
    """One sample of the audit slice."""

    sample: str
    label: int | None  # None: people say that no class fits, so every guess is wrong
    settled: float


class Audit:
    """The newest audit samples that are still stored, and the predictions of models.

    The newest `window` answers count. `meanwhile` is called before every part of an evaluation,
    because a whole one may take seconds.
    """

    def __init__(
        self,
        storage: Storage,
        decode: Decode,
        window: int,
        *,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage = storage
        self._decode = decode
        self._window = window
        self._meanwhile = meanwhile
        self._inputs: dict[str, Tensor] = {}
        self._guesses: dict[int, dict[str, tuple[int, float]]] = {}  # by version and sample

    def samples(self) -> tuple[AuditSample, ...]:
        """Return the current audit slice, oldest first."""
        questions = self._storage.questions.audited(self._window)
        names = [question.sample for question in questions]
        self._read([name for name in names if name not in self._inputs])
        self._inputs = {name: self._inputs[name] for name in names if name in self._inputs}
        return tuple(
            AuditSample(one.sample, one.label, one.settled or 0.0)
            for one in reversed(questions)
            if one.sample in self._inputs
        )

    def evaluate(
        self, version: int, model: Classifier, samples: Sequence[AuditSample]
    ) -> tuple[list[int], list[float]]:
        """Return the predicted classes of a version for some samples, and their entropies."""
        old = self._guesses.get(version, {})
        known = {name: seen for name, seen in old.items() if name in self._inputs}
        new = [one.sample for one in samples if one.sample not in known]
        for at in range(0, len(new), _CHUNK):
            self._meanwhile()
            part = new[at : at + _CHUNK]
            inputs = torch.stack([self._inputs[name] for name in part])
            known.update(zip(part, _judge(model, inputs), strict=True))
        self._guesses[version] = known
        found = [known[one.sample] for one in samples]
        return [guess for guess, _ in found], [entropy for _, entropy in found]

    def opinions(self, source: Classifier) -> list[Opinion]:
        """Return what people and the source model say about all questioned samples, oldest first.

        This includes samples that the method chose: all answers show whether people are honest.
        """
        compared = self._storage.questions.compared(_OPINIONS)
        known = {one.sample for one in compared}
        # Questions of an earlier attakit version do not contain the source model's guess.
        old = [one for one in self.samples() if one.sample not in known]
        rows = zip(old, *self.evaluate(SOURCE, source, old), strict=True)
        return [
            *(Opinion(one.label, guess, entropy) for one, guess, entropy in rows),
            *(
                Opinion(
                    one.label, one.source_guess, one.source_entropy or 0.0, one.purpose == "audit"
                )
                for one in compared
                if one.source_guess is not None
            ),
        ]

    def pairs(self) -> tuple[tuple[int | None, int | None], ...]:
        """Return what two people said about the same sample.

        Either every question needs several answers, or some questions are asked again.
        """
        together = self._storage.questions.second_opinions(self._window)
        return (*together, *self._storage.checks.pairs())

    def drop(self, keep: Sequence[int]) -> None:
        """Keep the predictions of these versions only."""
        self._guesses = {version: self._guesses.get(version, {}) for version in keep}

    def _read(self, names: Sequence[str]) -> None:
        contents = self._storage.samples.contents(names) if names else {}
        for name, content in contents.items():
            try:
                self._inputs[name] = self._decode(content)
            except StreamError as error:  # it was valid under earlier settings
                log.warning("Audit sample %s is left out: %s", name, error)


def _judge(model: Classifier, inputs: Tensor) -> list[tuple[int, float]]:
    with torch.no_grad():
        logits = model(place(inputs, model.device)).logits
    return list(zip(logits.argmax(dim=1).tolist(), softmax_entropy(logits).tolist(), strict=True))
