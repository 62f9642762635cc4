"""The audit slice: what people said about samples that were drawn at random.

The method never sees these samples, so they judge every model alike.
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

_OPINIONS = 5000  # answers that show whether people are honest
_CHUNK = 25  # samples of an evaluation between two looks at what else is due


@dataclass(frozen=True, slots=True)
class AuditAccuracy:
    """How often answers to audit samples were right."""

    served: Estimate  # what was really answered to requests
    source: Estimate | None  # what the source model says; None if that is not known of all samples

    def numbers(self) -> dict[str, float]:
        """The same as numbers of a turn."""
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
    """Accuracy of what was served and of the source model, on the same samples.

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
    label: int | None  # None: people say it is of no class, so every guess is wrong
    settled: float


class Audit:
    """The newest audit samples whose contents are kept, and what models say about them.

    The newest `window` answers count. `meanwhile` is called before every part of an evaluation,
    which may take seconds as a whole.
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
        """The audit slice as it is now, oldest first."""
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
        """The classes a version predicts for some samples, and the entropy of each prediction."""
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
        """What people and the source model say about all samples asked about, oldest first.

        Also about those that the method chose: whether people are honest shows in all answers.
        """
        compared = self._storage.questions.compared(_OPINIONS)
        known = {one.sample for one in compared}
        # Questions that an earlier version of attakit put do not hold the source model's guess.
        old = [one for one in self.samples() if one.sample not in known]
        rows = zip(old, *self.evaluate(SOURCE, source, old), strict=True)
        return [
            *(Opinion(one.label, guess, entropy) for one, guess, entropy in rows),
            *(
                Opinion(one.label, one.source_guess, one.source_entropy or 0.0)
                for one in compared
                if one.source_guess is not None
            ),
        ]

    def pairs(self) -> tuple[tuple[int | None, int | None], ...]:
        """What two people said about the same sample, oldest first."""
        return self._storage.questions.second_opinions(self._window)

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
