"""What a candidate must prove: plain arithmetic on what models and people say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from attakit.service.learner.honesty import Opinion, people_agree, source_agreement
from attakit.service.learner.names import FEW_CLASSES, NAMES_CONFIDENCE, own_names
from attakit.service.learner.sequences import (
    count_needed,
    estimate,
    log_dependence,
    log_threshold,
    paired_counts,
    paired_difference,
)
from attakit.service.learner.wording import about, allowed, percent, points
from attakit.service.storage.rows import Gate
from attakit.settings.service import GateTable

_DOUBT = math.log(3)  # rejecting needs less evidence than trusting


@dataclass(frozen=True, slots=True)
class SourceLike:
    """How often models agree with the source model's labels of stored samples."""

    candidate: float
    serving: float
    source: float  # can be slightly below 1, because a sample was answered in another batch


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a candidate and about people. All sequences start with the oldest."""

    labels: Sequence[int | None]  # people's audit labels; None if no class fits
    candidate: Sequence[int]
    serving: Sequence[int]
    source: Sequence[int]
    said: Sequence[Opinion] = ()  # all answers, from the audit and the method
    pairs: Sequence[tuple[int | None, int | None]] = ()  # what two people say about a sample
    source_like: SourceLike | None = None  # None if the method keeps no source-like samples
    classes: int = 2
    since: str = ""  # the event since which audit answers count, in words; empty if all count
    audit_share: float = 0.2  # share of future answers, to estimate how many are missing


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a candidate must prove."""

    passed: bool
    text: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    missing: int | None = None  # estimated number of answers; None if more do not help
    waiver: str = ""  # the setting that waives it


def judge(table: GateTable, seen: Evidence) -> Gate:
    """Pass a candidate that proves everything. Otherwise say what is not proven, and what to do."""
    numbers = _candidate_accuracy(table, seen)
    checks = list(_checks(table, seen))
    for check in checks:
        numbers |= check.numbers
    failed = [check for check in checks if not check.passed]
    if not failed:
        return Gate(True, f"Passed: {'; '.join(check.text for check in checks)}.", numbers)
    missing = [check.missing for check in failed if check.missing is not None]
    if missing and failed[0].missing is not None:
        numbers["missing_answers"] = max(missing)
        advice = f"About {about(max(missing))} more answers are needed"
        advice += f", or `{failed[0].waiver}`, which waives this check"
    else:
        advice = f"`{failed[0].waiver}` waives this check"
    return Gate(False, f"Held back: {failed[0].text}. {advice}.", numbers)


def _candidate_accuracy(table: GateTable, seen: Evidence) -> dict[str, float]:
    """For every candidate, even if it is held back for another reason."""
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
    """Run the checks in order: each one relies on those before it."""
    yield _enough(table, seen)
    yield _honest(table, seen)
    if not seen.labels:
        return
    yield _informed(table, seen)
    yield _better(table, seen, seen.serving, "serving")
    yield _keeps_the_source(table, seen)
    yield _better(table, seen, seen.source, "source")


def _enough(table: GateTable, seen: Evidence) -> Check:
    count, since = len(seen.labels), f" since {seen.since}" if seen.since else ""
    numbers = {"audit_answers": count}
    if count >= table.audit_needed:
        return Check(True, f"judged by {count} audit answers{since}", numbers)
    text = f"there are too few audit answers{since} to judge it, {count} of {table.audit_needed}"
    missing = _of_all(table.audit_needed - count, seen)
    return Check(False, text, numbers, missing, f"gate.audit_needed = {max(1, count)}")


def _honest(table: GateTable, seen: Evidence) -> Check:
    """Check that people agree with an independent source of knowledge."""
    found = source_agreement(seen.said, seen.classes, table.trust, table.audit_window)
    needed = log_threshold(table.confidence)
    numbers = {"trust": found.sure_share, "trust_answers": found.count, "trust_log_e": found.log_e}
    if not found.count:
        del numbers["trust"]
    if table.trust == 0:
        return Check(True, "people are believed without proof (`gate.trust = 0`)", numbers)
    agreed = (
        f"people agree with the source model on {percent(found.share)} of {found.count} answers, "
        f"chance would give {percent(1 / seen.classes)}"
    )
    waiver = "gate.trust = 0"
    if found.log_e_below >= needed:
        text = (
            f"{agreed}, so they contradict it on purpose, or `classes` is not in the order of the "
            f"model's outputs"
        )
        return Check(False, text, numbers, waiver=waiver)
    if found.log_e_renamed >= _DOUBT:
        text = (
            f"{agreed}, but they would on {percent(found.renamed_share)} if its classes had other "
            f"names, so they use other names on purpose, or `classes` is not in the order of the "
            f"model's outputs"
        )
        return Check(False, text, numbers, waiver=waiver)
    names = own_names(seen.said, seen.classes) if seen.classes <= FEW_CLASSES else None
    numbers |= {} if names is None else {"names_log_e": names.log_e}
    proven = names is None or names.log_e >= log_threshold(NAMES_CONFIDENCE)
    if found.log_e >= needed and proven:
        return Check(True, agreed, numbers)
    together = people_agree(seen.pairs, seen.classes)
    if together >= needed:
        return Check(True, f"people agree with each other on {len(seen.pairs)} samples", numbers)
    text = f"it is not certain yet that people answer honestly: {agreed}"
    if names is not None and found.log_e >= needed:
        renamed = names.groups[0][-1.0] / max(1, len(seen.said))
        text = (
            f"it is not certain yet that people use the classes' own names: {agreed}, and they "
            f"would on {percent(renamed)} of all answers if its classes had other names"
        )
        return Check(False, text, numbers, names.missing(), waiver)
    return Check(False, text, numbers, found.missing(table.confidence), waiver)


def _informed(table: GateTable, seen: Evidence) -> Check:
    """Check that answers depend on the samples: what was learned from some must predict others."""
    found, needed = (
        log_dependence(seen.candidate, seen.labels, seen.classes),
        log_threshold(table.confidence),
    )
    if table.trust == 0 or found >= needed:
        return Check(True, "what it learned from some answers predicts others")
    text = (
        "what it learned from some answers does not predict others, so people may answer at "
        "random or always give the same answer"
    )
    missing = None
    if found > 0:
        missing = _of_all(math.ceil(len(seen.labels) * (needed / found - 1)), seen)
    return Check(False, text, {}, missing, "gate.trust = 0")


def _better(table: GateTable, seen: Evidence, other: Sequence[int], name: str) -> Check:
    """Check that it is right more often than another model, and surely not much less often."""
    found = paired_difference(seen.labels, seen.candidate, other, table.confidence)
    right = [
        sum(guess == label for guess, label in zip(guesses, seen.labels, strict=True))
        / len(seen.labels)
        for guesses in (seen.candidate, other)
    ]
    low = -table.audit_margin
    text = (
        f"right on {percent(right[0], 1)} of the audit, the {name} model on {percent(right[1], 1)}"
    )
    numbers = {
        f"{name}_accuracy": right[1],
        f"{name}_difference": found.value,
        f"{name}_difference_low": found.low,
    }
    waiver = "gate.audit_margin = 1"
    if table.audit_margin < 1 and found.value <= 0:
        return Check(False, f"{text}, so it is no better", numbers, waiver=waiver)
    sure = (
        f" (with {percent(table.confidence)} confidence the difference is at least "
        f"{points(found.low, low)} points, {allowed(table.audit_margin)} is allowed)"
    )
    if table.audit_margin >= 1 or found.low >= low:
        return Check(True, text + sure, numbers)
    counts = paired_counts(seen.labels, seen.candidate, other)
    total = count_needed(counts, low, -1.0, table.confidence)
    missing = None if total is None else _of_all(total - len(seen.labels), seen)
    return Check(False, text + sure, numbers, missing, waiver)


def _keeps_the_source(table: GateTable, seen: Evidence) -> Check:
    if seen.source_like is None:
        return Check(True, "the method keeps no source-like samples to be checked on")
    found = seen.source_like
    # If only the serving model counted, each promotion could lose a little more.
    least = max(found.serving, found.source) - table.source_margin
    agreed = percent(found.candidate, 1, other=least)
    text = (
        f"agrees with {agreed} of the source-like samples, the serving model "
        f"with {percent(found.serving, 1)}, the source model with {percent(found.source, 1)} "
        f"({100 * table.source_margin:g} points less than either allowed)"
    )
    numbers = {
        "candidate_source_like": found.candidate,
        "serving_source_like": found.serving,
        "source_source_like": found.source,
    }
    return Check(found.candidate >= least, text, numbers, waiver="gate.source_margin = 1")


def _of_all(audit_answers: int, seen: Evidence) -> int:
    """Return how many answers are needed until this number of them belong to the audit."""
    return math.ceil(max(1, audit_answers) / seen.audit_share) if seen.audit_share else 1


def is_worse(
    table: GateTable, labels: Sequence[int | None], present: Sequence[int], before: Sequence[int]
) -> bool:
    """True if a version is surely right less often than the one before it.

    It may be called any number of times: a version that is no worse is rolled back with a
    probability of at most 1 - `confidence`.

    >>> is_worse(GateTable(), [0] * 5, [1] * 5, [0] * 5)
    True
    """
    return paired_difference(labels, present, before, table.confidence).high < 0
