"""Run a live service for an hour of simulated time, in a few minutes, and check its health.

    python benchmarks/soak.py
    python benchmarks/soak.py --minutes 10 --seed 3

Digits of three domains come in one after the other, twice. Eight people answer after a minute on
average, one time in ten wrongly; some skip, take an answer back, send it twice or never answer.
Prints its checks, and exits with 1 unless all hold: memory is flat, the budget is exact, no answer
is lost, and the database stays within its retention. The served model must end more accurate than
the source model.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from simulated_people import People
from simulated_service import (
    BEGIN,
    Clock,
    Graded,
    Picture,
    SimulatedService,
    World,
    fresh_pictures,
    stream,
)
from soak_checks import (
    Check,
    budget_is_exact,
    budget_violations,
    database_is_bounded,
    is_more_accurate,
    kept_contents,
    memory_is_flat,
    no_answer_is_lost,
    resident_memory,
)

from attakit.build.data import load_task
from attakit.build.models import digits_model
from attakit.build.task import Task
from attakit.service.demo import demo_tables
from attakit.settings.experiment import StreamTable
from attakit.settings.load import parse_service
from attakit.settings.service import ServiceSettings

CLEAN_SECONDS = 60.0
PER_1000 = 52.0  # labels: with the audit 400 in an hour, about as many as people can answer
LAST = 5  # the last fifth of the stream counts as its end


@dataclass
class Measured:
    """Measurements taken while time passes."""

    graded: list[Graded] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)  # bytes
    contents: list[tuple[int, int]] = field(default_factory=list)  # kept, and most that may be
    violations: list[str] = field(default_factory=list)  # of the budget


def soak_settings(folder: Path, world: World, **tables: Mapping[str, Any]) -> ServiceSettings:
    """A service for the digits whose database must be cleaned many times within the hour."""
    usual: dict[str, Mapping[str, Any]] = {
        "labels": {
            "budget": 400,
            "per_1000": PER_1000,
            "lease_seconds": 120.0,
            "settle_seconds": 5.0,
            "expiry_seconds": 600.0,
        },
        "learning": {"batch_size": 50, "batch_seconds": 30.0, "checkpoint_every": 5},
        "retention": {"images": 600, "days": 1 / 96},
    }
    merged = {name: {**usual.get(name, {}), **tables.get(name, {})} for name in {*usual, *tables}}
    return parse_service({**demo_tables(folder), **merged, "seed": world.seed})


class Soak:
    """An hour of a service.

    Parameters
    ----------
    world
        How digits arrive and how people answer.
    settings
        The service's settings.
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
        """Run the simulation, then wait until no question is open."""
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
            self.service.learner.run_once()
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


def tell(soak: Soak) -> bool:
    """Print the results; return whether all checks hold."""
    versions = soak.service.storage.versions
    gates = [version.gate for version in versions.all() if version.gate is not None]
    promotions = versions.promotions(limit=1000)
    print(
        f"{len(soak.service.truth)} digits, {soak.service.storage.turns.last() + 1} turns, "
        f"{len(gates)} candidates, {sum(gate.passed for gate in gates)} passed the gate, "
        f"{len(promotions) - 1} promotions; version {promotions[0].version} answers"
    )
    for one in reversed(promotions):
        told = one.reason.partition(";")[0]  # the rest is on the dashboard of a real service
        print(f"  minute {(one.at - BEGIN) / 60:.0f}, version {one.version}: {told}")
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
    parser.add_argument("--per-1000", type=float, default=PER_1000)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.set_num_threads(1)
    world = World(seconds=60 * options.minutes, seed=options.seed)
    task = load_task(StreamTable())
    digits_model(task)  # trains it, if it is not there from an earlier time
    began = time.perf_counter()
    pace = {"per_1000": options.per_1000}
    with (
        TemporaryDirectory() as folder,
        closing(Soak(world, soak_settings(Path(folder), world, labels=pace), task)) as soak,
    ):
        soak.run()
        well = tell(soak)
    print(f"{options.minutes:g} minutes in {(time.perf_counter() - began) / 60:.1f}")
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
