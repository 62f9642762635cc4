"""What 10, 100 and 1,000 servers need: a queueing simulation with measured costs.

    python benchmarks/scaling_simulation.py                 # reads benchmarks/scaling_costs.json
    python benchmarks/scaling_simulation.py --keep 0.01     # servers store one sample in a hundred

Simulated (with simpy) are the parts that all servers share: the database with its cores and its one
lock for exclusive transactions, the one learner, and people who answer. A server is a source of
samples: its own queue depends on nothing else. Samples come at random, as many as keep `--load` of
a core of each server busy. A server writes what has gathered since its last write in one
transaction, and stores nothing while 10,000 samples wait, as the real one does.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import simpy
from scaling_costs import COSTS, Costs

from attakit.settings.service import LearningTable, RetentionTable

LARGEST_WRITE = 500  # samples in one transaction
ANSWERS_PER_HOUR = 600  # of one person
LABEL_WRITES = 2  # exclusive transactions of a lease and an answer; the others only read
LEARNER_WRITES = 6  # exclusive transactions of a turn
DAY = 86_400


@dataclass(frozen=True)
class Load:
    """What is asked of a deployment."""

    servers: int
    share: float  # of a core of each server that requests keep busy
    keep: float  # share of samples that servers store
    people: int
    database_cores: int


@dataclass
class Seen:
    """What happened while the simulation ran."""

    stored: int = 0
    refused: int = 0  # samples that were answered and not stored
    looked_at: int = 0
    turns: int = 0
    labels: int = 0
    learner_seconds: float = 0.0
    database_seconds: float = 0.0
    lock_seconds: float = 0.0
    answers: list[float] = field(default_factory=list)  # seconds that people waited
    writes: list[float] = field(default_factory=list)  # seconds of a bulk write


class Deployment:
    """The shared parts as queues."""

    def __init__(self, load: Load, costs: Costs, seed: int = 0) -> None:
        self.load, self.costs, self.seen = load, costs, Seen()
        self.world = simpy.Environment()
        self.cores = simpy.Resource(self.world, load.database_cores)
        self.lock = simpy.Resource(self.world, 1)
        self.draw = np.random.default_rng(seed)
        self.waiting = 0  # samples that the learner has not taken
        self.unlearned = 0  # answers that it has not taken

    @property
    def rate(self) -> float:
        """Samples per second of one server that would be stored."""
        return self.load.keep * self.load.share / self.costs.request_seconds

    def run(self, seconds: float) -> Seen:
        for _ in range(self.load.servers):
            self.world.process(self._server())
        for _ in range(self.load.people):
            self.world.process(self._person())
        self.world.process(self._polls())
        self.world.process(self._learner())
        self.world.run(until=seconds)
        return self.seen

    def _compute(self, seconds: float) -> Iterator[simpy.Event]:
        with self.cores.request() as core:
            yield core
            yield self.world.timeout(seconds)
            self.seen.database_seconds += seconds

    def _exclusive(self, rows: int = 0) -> Iterator[simpy.Event]:
        """Run a transaction during which no other exclusive one runs."""
        with self.lock.request() as turn:
            yield turn
            began = self.world.now
            work = self.costs.write_seconds + rows * self.costs.insert_seconds
            yield from self._compute(work)
            yield self.world.timeout(max(0.0, self.costs.lock_seconds - self.costs.write_seconds))
            self.seen.lock_seconds += self.world.now - began

    def _server(self) -> Iterator[simpy.Event]:
        """Write what has come since the last write; others may write at the same time."""
        yield self.world.timeout(self.draw.uniform(0, 1))
        last = self.world.now
        while True:
            came = int(self.draw.poisson(self.rate * (self.world.now - last)))
            if not came:
                yield self.world.timeout(self.draw.exponential(1 / self.rate))
                came = 1
            last = began = self.world.now
            if self.waiting >= RetentionTable().images:
                self.seen.refused += came
                yield self.world.timeout(1.0)  # it looks again after a second
                continue
            count = min(came, LARGEST_WRITE)
            self.seen.refused += came - count  # really they wait in a queue that overflows later
            yield from self._compute(self.costs.write_seconds + count * self.costs.insert_seconds)
            yield self.world.timeout(max(0.0, self.costs.lock_seconds - self.costs.write_seconds))
            self.waiting += count
            self.seen.stored += count
            self.seen.writes.append(self.world.now - began)

    def _polls(self) -> Iterator[simpy.Event]:
        """Every server looks for promotions, tokens and the status, in small transactions."""
        rate = self.load.servers * self.costs.idle_transactions
        if not rate:
            return
        step = max(0.001, 1 / rate)
        while True:
            yield self.world.timeout(step)
            # A reading transaction counts as much as a writing one, which is too much.
            self.world.process(self._compute(self.costs.write_seconds * rate * step))

    def _person(self) -> Iterator[simpy.Event]:
        while True:
            yield self.world.timeout(self.draw.exponential(3600 / ANSWERS_PER_HOUR))
            began = self.world.now
            for _ in range(LABEL_WRITES):
                yield from self._exclusive()
            reads = max(0.0, self.costs.label_transactions - LABEL_WRITES)
            yield from self._compute(reads * self.costs.write_seconds)
            self.seen.answers.append(self.world.now - began)
            self.unlearned += 1

    def _learner(self) -> Iterator[simpy.Event]:
        table = LearningTable()
        while True:
            if self.waiting < table.batch_size and not self.unlearned:
                yield self.world.timeout(0.25)
                continue
            batch = min(self.waiting, table.batch_size)
            passed = self.waiting - batch if self.waiting > table.backlog else 0
            labels, self.unlearned = self.unlearned, 0
            self.waiting -= batch + passed
            yield from self._exclusive(batch + passed)  # marks what the turn takes and passes over
            for _ in range(LEARNER_WRITES):
                yield from self._exclusive()
            work = self.costs.turn_seconds + labels * self.costs.label_seconds
            yield self.world.timeout(work)
            self.seen.learner_seconds += work
            self.seen.turns += 1
            self.seen.looked_at += batch
            self.seen.labels += labels


def describe(load: Load, costs: Costs, seconds: float) -> dict[str, str]:
    """Return one row of the table."""
    seen = Deployment(load, costs).run(seconds)
    offered = load.servers * load.share / costs.request_seconds
    stored = seen.stored / seconds
    size = (costs.sample_bytes + costs.content_bytes) * stored * DAY / 1e9
    return {
        "servers": f"{load.servers:,}",
        "requests/s": f"{offered:,.0f}",
        "stored/s": f"{stored:,.0f}",
        "looked at": f"{seen.looked_at / max(1, seen.stored):.1%}",
        "database cores": f"{seen.database_seconds / seconds:.1f} of {load.database_cores}",
        "lock": f"{seen.lock_seconds / seconds:.0%}",
        "write p99 (ms)": f"{1000 * quantile(seen.writes):,.0f}",
        "answer p99 (ms)": f"{1000 * quantile(seen.answers):,.0f}",
        "learner": f"{seen.learner_seconds / seconds:.0%}",
        "GB/day": f"{size:,.1f}",
        "connections": f"{math.ceil(load.servers * costs.connections):,}",
    }


def quantile(values: list[float]) -> float:
    return float(np.quantile(values, 0.99)) if values else math.nan


def read_costs(path: Path) -> Costs:
    return Costs(**json.loads(path.read_text()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--costs", type=Path, default=COSTS)
    parser.add_argument("--lock-seconds", type=float, help="in place of the measured ones")
    parser.add_argument("--servers", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--load", type=float, default=0.5)
    parser.add_argument("--keep", type=float, default=1.0)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    costs = read_costs(options.costs)
    if options.lock_seconds is not None:
        costs = replace(costs, lock_seconds=options.lock_seconds)
    rows = [
        describe(
            Load(servers, options.load, options.keep, options.people, options.cores),
            costs,
            options.seconds,
        )
        for servers in options.servers
    ]
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row.values()) + " |")


if __name__ == "__main__":
    main()
