"""What a candidate must prove, as plain arithmetic on what models and people say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from attakit.service.learner.audit import Estimate, estimate, trust
from attakit.service.storage.rows import Gate
from attakit.settings.service import GateTable

_PSEUDO = 0.5  # of an answer, added to each of the four cells (Agresti and Min 2005)


def paired_difference(
    labels: Sequence[int | None], new: Sequence[int], old: Sequence[int], confidence: float
) -> Estimate:
    """The difference of two accuracies with the interval of Agresti and Min for matched pairs.

    Each bound alone holds with the confidence asked for.

    >>> found = paired_difference([0] * 10, [0] * 10, [0] * 5 + [1] * 5, confidence=0.9)
    >>> round(found.value, 2), found.low > 0
    (0.5, True)
    """
    gained = sum(a == label != b for label, a, b in zip(labels, new, old, strict=True))
    lost = sum(b == label != a for label, a, b in zip(labels, new, old, strict=True))
    count = len(labels) + 4 * _PSEUDO
    change = gained - lost
    spread = math.sqrt(max(0.0, gained + lost + 2 * _PSEUDO - change**2 / count)) / count
    half = NormalDist().inv_cdf(confidence) * spread
    value = change / len(labels) if labels else 0.0
    return Estimate(value, change / count - half, change / count + half, len(labels))


@dataclass(frozen=True, slots=True)
class SourceLike:
    """How often models agree with the source model's labels of the samples that a method keeps."""

    candidate: float
    serving: float
    source: float  # hardly less than 1: a sample counts as it was answered among others


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a candidate: labels and guesses for the audit samples, and agreement."""

    labels: Sequence[int | None]  # from people; None where no class fits
    candidate: Sequence[int]
    serving: Sequence[int]
    source: Sequence[int]
    source_entropies: Sequence[float]
    source_like: SourceLike | None = None  # None if the method keeps no source-like samples
    classes: int = 2
    since: str = ""  # the event since which answers count, in words; empty if all count


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a candidate must prove."""

    passed: bool
    text: str
    numbers: dict[str, float]


def judge(table: GateTable, seen: Evidence) -> Gate:
    """Let a candidate pass if it proves everything; else say, in a sentence, what it does not."""
    numbers = _candidate_accuracy(table, seen)
    proven = []
    for check in _checks(table, seen):
        numbers |= check.numbers
        if not check.passed:
            return Gate(False, f"Held back: {check.text}.", numbers)
        proven.append(check.text)
    return Gate(True, f"Passed: {'; '.join(proven)}.", numbers)


def _candidate_accuracy(table: GateTable, seen: Evidence) -> dict[str, float]:
    """For every candidate, also one that is held back for another reason."""
    if not seen.labels:
        return {}
    right = sum(a == b for a, b in zip(seen.candidate, seen.labels, strict=True))
    found = estimate(right, len(seen.labels), table.confidence)
    return {
        "candidate_accuracy": found.value,
        "candidate_accuracy_low": found.low,
        "candidate_accuracy_high": found.high,
    }


def _checks(table: GateTable, seen: Evidence) -> Iterator[Check]:
    """In the order in which they make sense: each one relies on those before it."""
    yield _enough(table, seen)
    yield _trusted(table, seen)
    yield _not_worse(table, seen, seen.serving, "serving")
    yield _keeps_the_source(table, seen)
    yield _not_worse(table, seen, seen.source, "source")


def _enough(table: GateTable, seen: Evidence) -> Check:
    count, since = len(seen.labels), f" since {seen.since}" if seen.since else ""
    if count < table.audit_needed:
        text = (
            f"there are too few audit answers{since} to judge it, {count} of {table.audit_needed}"
        )
        return Check(False, text, {"audit_answers": count})
    return Check(True, f"judged by {count} audit answers{since}", {"audit_answers": count})


def _trusted(table: GateTable, seen: Evidence) -> Check:
    found = trust(seen.labels, seen.source, seen.source_entropies, seen.classes, table.confidence)
    text = (
        f"people agree with the source model on {found.share:.0%} of the {found.count} samples "
        f"that it is surest about"
    )
    passed = found.beyond_chance >= table.trust
    if not passed:
        text += (
            f", too few to be sure that it is not chance ({found.beyond_chance:.2f} on a scale "
            f"from chance to full agreement, {table.trust:.2f} is needed), so the answers look "
            f"random"
        )
    numbers = {
        "trust": found.share,
        "trust_beyond_chance": found.beyond_chance,
        "trust_samples": found.count,
    }
    return Check(passed, text, numbers)


def _not_worse(table: GateTable, seen: Evidence, other: Sequence[int], name: str) -> Check:
    found = paired_difference(seen.labels, seen.candidate, other, table.confidence)
    right = [
        sum(guess == label for guess, label in zip(guesses, seen.labels, strict=True))
        / len(seen.labels)
        for guesses in (seen.candidate, other)
    ]
    passed = found.low >= -table.audit_margin
    text = (
        f"right on {right[0]:.1%} of the audit, the {name} model on {right[1]:.1%} (with "
        f"{table.confidence:.0%} confidence the difference is at least {100 * found.low:+.1f} "
        f"points, {-100 * table.audit_margin:+.1f} is allowed)"
    )
    numbers = {
        f"{name}_accuracy": right[1],
        f"{name}_difference": found.value,
        f"{name}_difference_low": found.low,
    }
    return Check(passed, text, numbers)


def _keeps_the_source(table: GateTable, seen: Evidence) -> Check:
    if seen.source_like is None:
        return Check(True, "the method keeps no source-like samples to be checked on", {})
    found = seen.source_like
    text = (
        f"agrees with {found.candidate:.1%} of the source-like samples, the serving model with "
        f"{found.serving:.1%}, the source model with {found.source:.1%} "
        f"({100 * table.source_margin:.1f} points less than either allowed)"
    )
    # Of the serving model alone, each promotion could lose a little more.
    passed = found.candidate >= max(found.serving, found.source) - table.source_margin
    numbers = {
        "candidate_source_like": found.candidate,
        "serving_source_like": found.serving,
        "source_source_like": found.source,
    }
    return Check(passed, text, numbers)
