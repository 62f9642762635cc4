"""Simulate which annotators the gate believes, and what bad answers can do.

    python benchmarks/gate_simulation.py
    python benchmarks/gate_simulation.py --seed 100 --people honest "wrong code"
    python benchmarks/gate_simulation.py --runs 10 --audit-share 0.2

Covers source models of 30 % to 95 % accuracy, 3 to 100 classes, and seven kinds of people. Prints
how often a learned model is promoted, after how many answers, and how far the served model ever
falls below the source model. Points in a space of many dimensions stand for samples; `judge` and
`is_worse` are those of the service.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from gate_world import (
    PEOPLE,
    Classes,
    Learner,
    Points,
    Say,
    World,
    make_people,
    make_world,
    predict,
)

from attakit.service.learner.evidence import Evidence, is_worse, judge
from attakit.service.learner.honesty import Opinion
from attakit.settings.service import GateTable, ServiceLabelsTable

ACCURACIES = (0.30, 0.44, 0.60, 0.80, 0.95)
CLASSES = (3, 10, 100)
BUDGET = 300
ROUND = 5  # answers between two candidates
OFFERED = 50  # samples from which they are chosen
TESTED = 2000
DAMAGE = 0.01  # below the source model by more than this counts


@dataclass(frozen=True)
class Outcome:
    """The result of one run."""

    classes: int
    accuracy: float  # asked for
    people: str
    source: float  # measured
    best: float  # of the last candidate
    first: int | None  # answers until the first promotion
    served: float  # in the end
    coded: float  # how often the source model agrees with a wrong code
    damage: float  # the most that the served model was ever below the source model

    @property
    def can_be_known(self) -> bool:
        """Whether the source model says more about the truth than chance, and than the code."""
        return self.source > max(1 / self.classes, self.coded)


@dataclass
class Service:
    """The audit, the answers, and the versions that answered."""

    world: World
    say: Say
    table: GateTable
    share: float
    learner: Learner
    points: list[Points] = field(default_factory=list)  # of the audit
    labels: list[int] = field(default_factory=list)
    said: list[Opinion] = field(default_factory=list)
    served: list[Points] = field(default_factory=list)  # centres; the last one answers
    promoted_at: int = 0  # audit answers at the last promotion

    def ask(self) -> None:
        """Ask some questions for the audit, the others where the model is unsure."""
        points, truth = self.world.draw(OFFERED)
        audit = int(np.sum(self.world.random.random(ROUND) < self.share))
        entropies = predict(self.learner.centres, points[audit:])[1]
        unsure = audit + np.argsort(-entropies)[: 2 * ROUND]
        chosen = self.world.random.choice(unsure, ROUND - audit, replace=False)
        asked = np.concatenate([np.arange(audit), chosen])
        guesses, source_entropies = predict(self.world.source, points)
        labels = self.say(truth, source_entropies)
        for at in asked:
            self.said.append(
                Opinion(int(labels[at]), int(guesses[at]), float(source_entropies[at]))
            )
        self.points += list(points[:audit])
        self.labels += labels[:audit].tolist()
        self.learner.learn(points[chosen], labels[chosen])

    def judge(self) -> bool:
        """Promote the learner's model if it passes; take it back if it falls."""
        candidate = self.learner.centres
        self._doubt()
        window = self.table.audit_window
        passed = judge(
            self.table,
            Evidence(
                labels=self.labels[-window:],
                candidate=self._guesses(candidate),
                serving=self._guesses(self.served[-1]),
                source=self._guesses(self.world.source),
                said=self.said,
                classes=self.world.classes,
                audit_share=self.share,
            ),
        ).passed
        if passed:
            self.served.append(candidate)
            self.promoted_at = len(self.labels)
        return passed

    def _doubt(self) -> None:
        since = self.labels[self.promoted_at :]
        if len(self.served) > 1 and since:
            present, before = (
                self._guesses(centres)[-len(since) :] for centres in self.served[-1:-3:-1]
            )
            if is_worse(self.table, since, present, before):
                self.served.pop()
                self.promoted_at = len(self.labels)

    def _guesses(self, centres: Points) -> list[int]:
        newest = self.points[-self.table.audit_window :]
        return predict(centres, np.stack(newest))[0].tolist() if newest else []


def simulate(
    classes: int, accuracy: float, people: str, seed: int, table: GateTable, share: float
) -> Outcome:
    """One run, until the budget is spent."""
    random = np.random.default_rng([classes, round(100 * accuracy), PEOPLE.index(people), seed])
    world = make_world(classes, accuracy, random)
    say = make_people(people, classes, random)
    service = Service(world, say, table, share, Learner.begin(world.source), served=[world.source])
    test, truth = world.draw(TESTED)
    source = _accuracy(world.source, test, truth)
    first, served, damage = None, source, 0.0
    for answers in range(ROUND, BUDGET + 1, ROUND):
        service.ask()
        before = service.served[-1]
        promoted = service.judge()
        if service.served[-1] is not before:
            served = _accuracy(service.served[-1], test, truth)
            damage = max(damage, source - served)
        if promoted and first is None:
            first = answers
    best = _accuracy(service.learner.centres, test, truth)
    wrong_code = people == "wrong code"
    coded = _accuracy(world.source, test, say(truth, test[:, 0])) if wrong_code else 0.0
    return Outcome(classes, accuracy, people, source, best, first, served, coded, damage)


def _accuracy(centres: Points, points: Points, truth: Classes) -> float:
    return float(np.mean(predict(centres, points)[0] == truth))


def by_people(outcomes: Sequence[Outcome]) -> Iterator[Sequence[str]]:
    yield ("people", "runs", "promoted", "labels", "gain", "damaged", "worst")
    for people in PEOPLE:
        chosen = [one for one in outcomes if one.people == people]
        yield _row(people, [one for one in chosen if one.can_be_known])
        if people == "wrong code":
            yield _row("wrong code, others", [one for one in chosen if not one.can_be_known])


def by_source(outcomes: Sequence[Outcome], people: str) -> Iterator[Sequence[str]]:
    yield ("classes, source", "runs", "promoted", "labels", "gain", "damaged", "worst")
    for classes, accuracy in product(CLASSES, ACCURACIES):
        chosen = [
            one
            for one in outcomes
            if (one.people, one.classes, one.accuracy) == (people, classes, accuracy)
        ]
        yield _row(f"{classes}, {accuracy:.0%}", chosen)


def by_gain(outcomes: Sequence[Outcome]) -> Iterator[Sequence[str]]:
    """Honest people only, by what the learner could gain in the end."""
    yield ("gain in the end", "runs", "promoted", "labels", "gain", "damaged", "worst")
    honest = [one for one in outcomes if one.people == "honest"]
    for low, high in ((-1, 0.02), (0.02, 0.1), (0.1, 0.2), (0.2, 0.4), (0.4, 1)):
        chosen = [one for one in honest if low <= one.best - one.source < high]
        if chosen:
            yield _row(f"{100 * max(0, low):.0f} to {100 * high:.0f} points", chosen)


def _row(name: str, outcomes: Sequence[Outcome]) -> Sequence[str]:
    firsts = [one.first for one in outcomes if one.first is not None]
    damaged = [one.damage > DAMAGE for one in outcomes]
    if not outcomes:
        return (name, "0", *["-"] * 5)
    return (
        name,
        str(len(outcomes)),
        f"{len(firsts) / len(outcomes):.0%}",
        f"{np.median(firsts):.0f}" if firsts else "-",
        f"{100 * np.mean([one.served - one.source for one in outcomes]):+.1f}",
        f"{np.mean(damaged):.1%}",
        f"{100 * max(one.damage for one in outcomes):.1f}",
    )


def show(title: str, rows: Iterable[Sequence[str]]) -> None:
    print(f"\n{title}\n")
    for number, row in enumerate(rows):
        print(f"| {' | '.join(row)} |")
        if number == 0:
            print(f"|---|{'---:|' * (len(row) - 1)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of each combination")
    parser.add_argument("--seed", type=int, default=0, help="of the first run of each combination")
    parser.add_argument("--people", nargs="+", choices=PEOPLE, default=PEOPLE)
    parser.add_argument("--classes", nargs="+", type=int, default=CLASSES)
    parser.add_argument("--audit-share", type=float, default=ServiceLabelsTable().audit_share)
    parser.add_argument("--trust", type=float, default=GateTable().trust)
    parser.add_argument("--needed", type=int, default=GateTable().audit_needed)
    options = parser.parse_args()
    table = GateTable(trust=options.trust, audit_needed=options.needed)
    began = time.perf_counter()
    outcomes = [
        simulate(classes, accuracy, people, seed, table, options.audit_share)
        for people, classes, accuracy, seed in product(
            options.people,
            options.classes,
            ACCURACIES,
            range(options.seed, options.seed + options.runs),
        )
    ]
    seconds = time.perf_counter() - began
    print(f"{len(outcomes)} runs of {BUDGET} answers in {seconds:.0f} s, {table}")
    show(
        "By people, where the source model is better than chance and than the code",
        by_people(outcomes),
    )
    show("Honest people, by classes and source model", by_source(outcomes, "honest"))
    show("A wrong code, by classes and source model", by_source(outcomes, "wrong code"))
    show("Honest people, by what can be gained", by_gain(outcomes))


if __name__ == "__main__":
    main()
