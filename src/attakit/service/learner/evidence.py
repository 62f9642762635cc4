"""What a candidate must prove: plain arithmetic on what models and people say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from attakit.service.learner.belief import believe
from attakit.service.learner.checks import Check, Evidence, SourceLike
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

__all__ = ["Evidence", "SourceLike", "is_worse", "judge"]


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
    hint = f" {failed[0].hint}" if failed[0].hint else ""
    return Gate(False, f"Held back: {failed[0].text}. {advice}.{hint}", numbers)


def _candidate_accuracy(table: GateTable, seen: Evidence) -> dict[str, float]:
    """Estimate the accuracy of a candidate, even if it is held back for another reason."""
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
    yield believe(table, seen)
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
    missing = seen.of_all(table.audit_needed - count)
    return Check(False, text, numbers, missing, f"gate.audit_needed = {max(1, count)}")


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
        missing = seen.of_all(math.ceil(len(seen.labels) * (needed / found - 1)))
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
    missing = None if total is None else seen.of_all(total - len(seen.labels))
    return Check(False, text + sure, numbers, missing, waiver)


def _keeps_the_source(table: GateTable, seen: Evidence) -> Check:
    if seen.source_like is None:
        return Check(True, "the method stores no source-like samples, so they are not checked")
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
