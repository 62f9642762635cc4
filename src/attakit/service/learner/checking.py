"""Plan the questions that check people, until people are believed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from attakit.service.learner.allowance import Amount
from attakit.service.learner.known import KNOWN_LABELS
from attakit.service.storage.storage import Storage
from attakit.settings.service import ServiceSettings

BELIEVED = "believed"  # the value that says whether the gate believes people


class CheckPlanner:
    """Draws known examples to ask about, or audit samples to ask another person about.

    Each is asked about once. It costs a question like any other.
    """

    def __init__(self, settings: ServiceSettings, storage: Storage) -> None:
        self._gate = settings.gate
        self._share = settings.labels.check_share
        self._storage = storage

    def draw(self, available: Amount, random: np.random.Generator) -> tuple[str, ...]:
        """Return the samples to ask about in a turn; none if people are believed."""
        if not self._share or not self._gate.trust or self._storage.key_values.get(BELIEVED, False):
            return ()
        pool = self._pool()
        asked = {one.sample for one in self._storage.checks.all()} if pool else set()
        pool = [name for name in pool if name not in asked]
        if not pool:
            return ()
        count = int(max(0, min(self._due(), available, len(pool))))
        return tuple(pool[place] for place in random.permutation(len(pool))[:count])

    def _pool(self) -> list[str]:
        known: Mapping[str, int] = self._storage.key_values.get(KNOWN_LABELS, {})
        if known:
            return sorted(known)
        # One person alone cannot give a second opinion.
        if not self._gate.second_opinions or self._storage.checks.people() < 2:
            return []
        return [one.sample for one in self._storage.questions.audited(self._gate.audit_window)]

    def _due(self) -> int:
        """Return how many are due: one at first, then the share of all questions."""
        asked = self._storage.checks.asked_by_purpose()
        counts = {purpose: one.classes + one.yes_no for purpose, one in asked.items()}
        checks = counts.pop("check", 0)
        return 1 + math.floor(sum(counts.values()) * self._share / (1 - self._share)) - checks


def right_on_known(storage: Storage) -> list[bool]:
    """Return for each answer about a known example whether it is right, oldest first."""
    known: Mapping[str, int] = storage.key_values.get(KNOWN_LABELS, {})
    answered = [one for one in storage.checks.all() if one.state in ("answered", "none")]
    settled = sorted(answered, key=lambda one: (one.settled or 0.0, one.question))
    return [one.label == known[one.sample] for one in settled if one.sample in known]


def known_left(storage: Storage) -> int:
    """Return how many known examples have no answer yet, and can still get one."""
    known: Mapping[str, int] = storage.key_values.get(KNOWN_LABELS, {})
    closed = {one.sample for one in storage.checks.all() if one.state != "open"}
    return len(known.keys() - closed)
