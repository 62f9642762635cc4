"""What must hold after a soak, measured on the service and on its database."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from simulated_people import People
from simulated_service import Graded, SimulatedService

from attakit.service.storage import Question
from attakit.service.storage.database import FILE

MEMORY_GROWTH = 0.1
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that must hold, and the measured values."""

    name: str
    passed: bool
    found: str


def resident_memory() -> int:
    """Bytes of memory that this process holds now; 0 where the system does not report it."""
    if not _STATM.exists():
        return 0
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory_is_flat(memory: Sequence[int]) -> Check:
    """Compare the last third of the time with the middle one; the first is for warming up."""
    third = len(memory) // 3
    middle, last = mean(memory[third : 2 * third]) / 1e6, mean(memory[2 * third :]) / 1e6
    found = f"{middle:.0f} MB in the middle third, {last:.0f} MB in the last"
    return Check("memory", last <= middle * (1 + MEMORY_GROWTH), found)


def budget_violations(service: SimulatedService) -> list[str]:
    """Return the errors of the account now: its own, and differences from the database."""
    ledger = service.learner.memory.ledger
    counts = service.storage.questions.counts()
    waiting = service.storage.questions.settled()
    limit = service.settings.labels.budget
    assert limit != "unlimited"
    expected = {
        "spent": (ledger.budget.spent, ledger.asked - ledger.refunded),
        "asked": (ledger.asked, counts.asked),
        "open": (len(ledger.open), counts.open + len(waiting)),
        "answers": (
            ledger.received,
            counts.answered + counts.no + counts.none - sum(map(_is_answered, waiting)),
        ),
    }
    wrong = [f"{name} is {a}, not {b}" for name, (a, b) in expected.items() if a != b]
    if counts.paid > limit:
        wrong.append(f"{counts.paid} answered or open of {limit}")
    return wrong


def _is_answered(question: Question) -> bool:
    return question.state in ("answered", "no", "none")


def budget_is_exact(service: SimulatedService, violations: Sequence[str]) -> Check:
    counts = service.storage.questions.counts()
    found = (
        f"{counts.asked} asked: {counts.answered} answered, {counts.open} open, {counts.skipped} "
        f"skipped, {counts.none} of no class, {counts.expired} expired; budget "
        f"{service.settings.labels.budget}"
    )
    for violation in violations[:3]:
        found += f"; {violation}"
    return Check("budget", not violations, found)


def is_more_accurate(name: str, graded: Sequence[Graded]) -> Check:
    served, frozen = mean(one.served for one in graded), mean(one.frozen for one in graded)
    found = f"{served:.1%}, of the frozen source model {frozen:.1%} ({len(graded)} samples)"
    return Check(name, served > frozen, found)


def no_answer_is_lost(service: SimulatedService, people: People) -> Check:
    """Check that every accepted answer is stored, decided its question, and was learned once."""
    questions = service.storage.questions
    lost = [one for one in people.accepted.values() if one.send(questions) != "repeated"]
    decided = {one.question: one for one in questions.recent(questions.counts().asked)}
    ignored = [
        one
        for one in people.accepted.values()
        if one.kind == "label" and decided[one.question].label != one.label
    ]
    turns = service.storage.turns.recent(service.storage.turns.last() + 1)
    taken = Counter(number for turn, _ in turns for number in turn.settled)
    not_once = [number for number in decided if taken[number] != 1]
    learned = sum((numbers or {}).get("answers", 0.0) for _, numbers in turns)
    wanted = sum(one.purpose == "learn" for one in decided.values())
    told = ", ".join(f"{count} {what}" for what, count in people.outcomes.most_common())
    found = (
        f"{len(people.accepted)} accepted: {len(lost)} lost, {len(ignored)} overruled, "
        f"{len(not_once)} of {len(decided)} outcomes not taken by exactly one turn, {learned:.0f} "
        f"of {wanted} outcomes learned from ({told})"
    )
    passed = not lost and not ignored and not not_once and learned == wanted
    return Check("answers", passed, found)


def kept_contents(service: SimulatedService) -> tuple[int, int]:
    """Images in the database, and how many may be: the limit, and what is still needed."""
    settings = service.settings
    open_now = service.storage.questions.counts().open
    replayed = settings.learning.checkpoint_every * settings.learning.batch_size
    most = settings.retention.images + replayed + open_now + settings.gate.audit_window
    return _count(service, "content IS NOT NULL"), most


def database_is_bounded(service: SimulatedService, contents: Sequence[tuple[int, int]]) -> Check:
    """Check that images stay within the limit, and that samples without a question are removed."""
    kept = max(count for count, _ in contents)
    rows, asked = _count(service, "1"), service.storage.questions.counts().asked
    now, _ = contents[-1]
    size = sum(path.stat().st_size for path in service.settings.folder.glob(f"{FILE}*"))
    found = (
        f"at most {kept} images kept (limit {service.settings.retention.images}), {rows} rows of "
        f"{len(service.truth)} samples in the end, {size / 1e6:.1f} MB"
    )
    passed = all(count <= most for count, most in contents) and rows <= now + asked
    return Check("database", passed, found)


def _count(service: SimulatedService, condition: str) -> int:
    with closing(sqlite3.connect(service.settings.folder / FILE)) as connection:
        (count,) = connection.execute(f"SELECT count(*) FROM samples WHERE {condition}").fetchone()
    return int(count)
