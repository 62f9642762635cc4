"""The gate: only a candidate that has proven itself is served, and only while it stays good."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import torch

from attakit.errors import ModelError
from attakit.nn.classifier import Classifier
from attakit.protocols import KeepsSourceLike
from attakit.records import LabelledRows
from attakit.service.learner.allowance import audit_share
from attakit.service.learner.audit import Audit, AuditSample
from attakit.service.learner.candidates import SOURCE, VersionFiles, promoted_versions
from attakit.service.learner.checking import BELIEVED, known_left, right_on_known
from attakit.service.learner.evidence import Evidence, SourceLike, is_worse, judge
from attakit.service.learner.memory import Memory
from attakit.service.storage.rows import Gate, Promotion, Version
from attakit.service.storage.storage import Storage
from attakit.service.storage.versions import LEARNER
from attakit.settings.service import ServiceSettings

log = logging.getLogger(__name__)

_CHUNK = 100


class Gatekeeper:
    """Judges candidates, promotes those that pass, and rolls back a promotion that went wrong."""

    def __init__(
        self, settings: ServiceSettings, storage: Storage, files: VersionFiles, audit: Audit
    ) -> None:
        self.table = settings.gate
        self._classes = len(settings.classes)
        self._labels = settings.labels
        self._storage = storage
        self._versions = storage.versions
        self._files = files
        self._audit = audit
        self._models: dict[int, Classifier] = {}

    def judge_new(self, memory: Memory) -> None:
        """Judge new versions, check the served one, and clean up. Safe to call twice."""
        self._judge_versions(source_like_rows(memory))
        if self.table.roll_back:
            self._doubt()
        self._files.clean(self.table.keep_versions)
        kept = (SOURCE, *promoted_versions(self._versions)[:2])
        self._audit.drop(kept)
        self._models = {number: one for number, one in self._models.items() if number in kept}

    def is_behind(self) -> bool:
        """True if a newer version was created while another one was judged."""
        (newest,) = self._versions.recent(limit=1)
        return newest.number != SOURCE and newest.gate is None

    def _judge_versions(self, anchors: LabelledRows | None) -> None:
        (newest,) = self._versions.recent(limit=1)
        for version in self._versions.unjudged():
            if version.number not in (SOURCE, newest.number):
                reason = f"Held back: version {newest.number} was created before it was judged."
                self._versions.gate(version.number, Gate(False, reason))
        if newest.number != SOURCE and newest.gate is None:
            self._decide(newest, anchors)

    def _decide(self, candidate: Version, anchors: LabelledRows | None) -> None:
        now = self._versions.current()
        assert now is not None  # the source model is promoted at the start
        found = self._judge(candidate, anchors)
        if "believed" in found.numbers:
            believed = bool(found.numbers["believed"])
            self._storage.key_values.change(BELIEVED, lambda _: believed)
        if found.passed:
            found = self._versions.pass_gate(candidate.number, found, after=now)
        else:
            self._versions.gate(candidate.number, found)
        log.info("Version %d: %s", candidate.number, found.reason)

    def _judge(self, candidate: Version, anchors: LabelledRows | None) -> Gate:
        serving = self._serving()
        if candidate.weights == serving.weights:
            return Gate(False, f"Held back: it is identical to version {serving.number}.")
        if not self._is_usable(candidate):
            return Gate(False, "Held back: its weights cannot be used. The log says why.")
        began, since = self._evidence_begins()
        samples = [one for one in self._audit.samples() if one.settled > began]
        agreement = None
        if anchors is not None:
            models = (self._model(candidate), self._model(serving), self._files.source)
            agreement = SourceLike(*(_agreement(model, anchors) for model in models))
        return judge(
            self.table,
            Evidence(
                labels=[sample.label for sample in samples],
                candidate=self._guesses(candidate, samples),
                serving=self._guesses(serving, samples),
                source=self._audit.evaluate(SOURCE, self._files.source, samples)[0],
                said=self._audit.opinions(self._files.source),
                pairs=self._audit.pairs(),
                source_like=agreement,
                classes=self._classes,
                since=since,
                known=right_on_known(self._storage),
                known_left=known_left(self._storage),
                audit_share=audit_share(self._labels, len(samples)),
                check_share=self._labels.check_share,
            ),
        )

    def _evidence_begins(self) -> tuple[float, str]:
        """Return since when audit answers count, and the event at that time.

        A person's choice or a roll-back was based on the answers until then. The next candidate is
        nearly the same model. It must not undo that choice with the same answers.
        """
        now, *before = self._versions.promotions(limit=2)
        if now.who != LEARNER:
            return now.at, f"{now.who} chose version {now.version}"
        if before and now.version < before[0].version:
            return now.at, f"the roll-back to version {now.version}"
        return -math.inf, ""

    def _doubt(self) -> None:
        """Roll back to the previous version if the current one turns out to be worse."""
        now = self._versions.current()
        numbers = promoted_versions(self._versions)[:2]
        if now is None or now.who != LEARNER or len(numbers) < 2:
            return  # only people may undo what people chose
        samples = [one for one in self._audit.samples() if one.settled > now.at]
        if not samples:
            return
        known = self._versions.get(numbers)
        if not all(self._is_usable(version) for version in known.values()):
            return
        present, before = (self._guesses(known[number], samples) for number in numbers)
        labels = [sample.label for sample in samples]
        if is_worse(self.table, labels, present, before):
            lost = _right(labels, before) - _right(labels, present)
            self._roll_back(now, numbers[1], lost / len(labels), len(labels))

    def _roll_back(self, now: Promotion, before: int, lost: float, count: int) -> None:
        reason = (
            f"Rolled back: on {count} audit answers since its promotion, version {now.version} is "
            f"right {100 * lost:.1f} points less often than version {before}."
        )
        log.warning(reason)
        key = f"back from {now.version} {now.at}"
        self._versions.promote(before, reason, LEARNER, key=key, after=now)

    def _serving(self) -> Version:
        """Return the served version: the last promoted one whose weights can be used."""
        promoted = promoted_versions(self._versions)
        known = self._versions.get([*promoted, SOURCE])
        order = (known[number] for number in (*promoted, SOURCE))
        return next(version for version in order if self._is_usable(version))

    def _guesses(self, version: Version, samples: Sequence[AuditSample]) -> list[int]:
        if not samples:
            return []
        return self._audit.evaluate(version.number, self._model(version), samples)[0]

    def _is_usable(self, version: Version) -> bool:
        try:
            self._model(version)
        except ModelError as error:
            log.warning("Version %d: %s", version.number, error)  # not for people: it names paths
            return False
        return True

    def _model(self, version: Version) -> Classifier:
        if version.number not in self._models:
            self._models[version.number] = self._files.load(version)
        return self._models[version.number]


def _right(labels: Sequence[int | None], guesses: Sequence[int]) -> int:
    return sum(guess == label for guess, label in zip(guesses, labels, strict=True))


def source_like_rows(memory: Memory) -> LabelledRows | None:
    """Return the method's samples with the source model's labels; None if it stores none."""
    method = memory.method
    if not isinstance(method, KeepsSourceLike) or len(method.source_like_anchors) == 0:
        return None
    return method.source_like_anchors.rows


def _agreement(model: Classifier, rows: LabelledRows) -> float:
    parts = zip(torch.split(rows.inputs, _CHUNK), torch.split(rows.labels, _CHUNK), strict=True)
    with torch.no_grad():
        right = sum(
            int((model(inputs).logits.argmax(dim=1) == labels).sum()) for inputs, labels in parts
        )
    return right / len(rows)
