"""Does a live service stay sound for an hour? In simulated time, so that it takes some minutes.

    python benchmarks/soak.py
    python benchmarks/soak.py --minutes 10 --seed 3

Digits of three domains come in one after the other, twice. Eight people answer after a minute on
average, one time in ten wrongly; some skip, take an answer back, send it twice or never answer.
Prints what was found, and exits with 1 unless memory is flat, the budget is kept exactly, no answer
is lost, the database stays within its retention, and what is served ends more accurate than the
source model.
"""

from __future__ import annotations

import argparse
import logging
import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import torch
from simulated_service import (
    BEGIN,
    Clock,
    Graded,
    People,
    Picture,
    SimulatedService,
    World,
    fresh_pictures,
    stream,
)

from attakit.bench.data import Task, load_task
from attakit.bench.experiment import StreamTable
from attakit.bench.models import digits_model
from attakit.service.demo import demo_tables
from attakit.service.load import parse_settings
from attakit.service.settings import ServiceSettings
from attakit.service.storage.database import FILE

CLEAN_SECONDS = 60.0
MEMORY_GROWTH = 0.1
LAST = 5  # the last fifth of the stream counts as its end
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must hold, and what was found."""

    name: str
    passed: bool
    found: str


@dataclass
class Measured:
    """What is looked at while time passes."""

    graded: list[Graded] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)  # bytes
    contents: list[tuple[int, int]] = field(default_factory=list)  # kept, and most that may be
    violations: list[str] = field(default_factory=list)  # of the budget


def soak_settings(folder: Path, world: World, **tables: Mapping[str, Any]) -> ServiceSettings:
    """A service for the digits whose database must be cleaned many times within the hour."""
    usual: dict[str, Mapping[str, Any]] = {
        "labels": {
            "budget": 400,
            "lease_seconds": 120.0,
            "settle_seconds": 5.0,
            "expiry_seconds": 600.0,
        },
        "learning": {"batch_size": 50, "batch_seconds": 30.0, "checkpoint_every": 5},
        "retention": {"images": 600, "days": 1 / 96},
    }
    merged = {name: {**usual.get(name, {}), **tables.get(name, {})} for name in {*usual, *tables}}
    return parse_settings({**demo_tables(folder), **merged, "seed": world.seed})


class Soak:
    """An hour of a service.

    Parameters
    ----------
    world
        How it goes.
    settings
        Of the service.
    task
        The digits.
    """

    def __init__(self, world: World, settings: ServiceSettings, task: Task) -> None:
        self.world = world
        self.task = task
        self.clock = Clock()
        self.service = SimulatedService(settings, self.clock)
        self.people = People(
            world,
            self.service.storage.questions,
            settings.labels.lease_seconds,
            len(settings.classes),
            self.service.truth,
            self.clock,
        )
        self.measured = Measured()
        self._looked = self._cleaned = BEGIN

    def run(self) -> None:
        """Let the time pass, and then wait until nothing is open any more."""
        coming = stream(self.task, self.world)
        sent = 0
        while self.clock.now < BEGIN + self.world.seconds:
            self.clock.now += self.world.tick
            due = round((self.clock.now - BEGIN) * self.world.rate)
            self._tick(list(islice(coming, due - sent)))
            sent = due
            self.measured.memory.append(resident_memory())
        while self._is_busy():
            self.clock.now += self.world.tick
            self._tick([])
        self.service.learner.save()
        self._clean()

    def checks(self) -> Iterator[Check]:
        """All that must hold in the end."""
        yield memory_is_flat(self.measured.memory)
        yield budget_is_exact(self.service, self.measured.violations)
        yield is_more_accurate(
            f"accuracy served in the last 1/{LAST} of the stream",
            self.measured.graded[-len(self.measured.graded) // LAST :],
        )
        yield is_more_accurate(
            "accuracy on fresh samples of the last domain",
            self.service.grade(fresh_pictures(self.task, self.world)),
        )
        yield no_answer_is_lost(self.service, self.people)
        yield database_is_bounded(self.service, self.measured.contents)

    def close(self) -> None:
        self.service.close()

    def _tick(self, sent: Sequence[Picture]) -> None:
        self.measured.graded += self.service.serve(sent)
        self.people.act()
        if self.clock.now - self._looked >= self.world.turn_seconds:
            self._looked = self.clock.now
            self.service.learner.look()
            self.measured.violations += budget_violations(self.service)
        if self.clock.now - self._cleaned >= CLEAN_SECONDS:
            self._cleaned = self.clock.now
            self._clean()

    def _clean(self) -> None:
        self.service.learner.clean()
        self.measured.contents.append(kept_contents(self.service))

    def _is_busy(self) -> bool:
        storage = self.service.storage
        return bool(storage.questions.counts().open or storage.questions.settled())


def resident_memory() -> int:
    """Bytes of memory that this process holds now; 0 where the system does not tell."""
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
    """What is wrong with the account now: in itself, or compared with the database."""
    ledger = service.learner.memory.ledger
    counts = service.storage.questions.counts()
    waiting = service.storage.questions.settled()
    limit = service.settings.labels.budget
    assert limit != "unlimited"
    expected = {
        "spent": (ledger.budget.spent, ledger.asked - ledger.refunded),
        "asked": (ledger.asked, counts.asked),
        "open": (len(ledger.open), counts.open + len(waiting)),
        "labels": (
            ledger.received,
            counts.answered - sum(one.state == "answered" for one in waiting),
        ),
    }
    wrong = [f"{name} is {a}, not {b}" for name, (a, b) in expected.items() if a != b]
    if counts.answered + counts.open > limit:
        wrong.append(f"{counts.answered} answered and {counts.open} open of {limit}")
    return wrong


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
    """Every accepted answer is in the database, decided its question, and was learned from once."""
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
    """Images stay within the limit, and of what was never asked about nothing is left."""
    kept = max(count for count, _ in contents)
    rows, asked = _count(service, "1"), service.storage.questions.counts().asked
    now, _ = contents[-1]
    size = (service.settings.folder / FILE).stat().st_size
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


def tell(soak: Soak) -> bool:
    """Print what came of it; returns whether all is well."""
    versions = soak.service.storage.versions
    gates = [version.gate for version in versions.all() if version.gate is not None]
    promotions = versions.promotions(limit=1000)
    print(
        f"{len(soak.service.truth)} digits, {soak.service.storage.turns.last() + 1} turns, "
        f"{len(gates)} candidates, {sum(gate.passed for gate in gates)} passed the gate, "
        f"{len(promotions) - 1} promotions; version {promotions[0].version} answers"
    )
    for one in reversed(promotions):
        print(f"  minute {(one.at - BEGIN) / 60:.0f}, version {one.version}: {one.reason}")
    graded = soak.measured.graded
    tenth = max(1, len(graded) // 10)
    for start in range(0, tenth * 10, tenth):
        part = graded[start : start + tenth]
        print(f"  from digit {start}: {is_more_accurate('', part).found}")
    checks = list(soak.checks())
    for check in checks:
        print(f"{'ok  ' if check.passed else 'FAIL'} {check.name}: {check.found}")
    return all(check.passed for check in checks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.set_num_threads(1)
    world = World(seconds=60 * options.minutes, seed=options.seed)
    task = load_task(StreamTable())
    digits_model(task)  # trains it, if it is not there from an earlier time
    began = time.perf_counter()
    with (
        TemporaryDirectory() as folder,
        closing(Soak(world, soak_settings(Path(folder), world), task)) as soak,
    ):
        soak.run()
        well = tell(soak)
    print(f"{options.minutes:g} minutes in {(time.perf_counter() - began) / 60:.1f}")
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
