"""Simulate which annotators the gate believes, and what bad answers can do.

    python benchmarks/gate_simulation.py
    python benchmarks/gate_simulation.py --known 10
    python benchmarks/gate_simulation.py --known 10 --from-stream
    python benchmarks/gate_simulation.py --seed 100 --people honest "wrong code"
    python benchmarks/gate_simulation.py --second-opinions --people honest --classes 3

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
    guess,
    make_people,
    make_world,
    predict,
)

from attakit.service.learner.allowance import audit_share
from attakit.service.learner.evidence import Evidence, is_worse, judge
from attakit.service.learner.honesty import Opinion
from attakit.settings.service import GateTable, ServiceLabelsTable

ACCURACIES = (0.30, 0.44, 0.60, 0.80, 0.95)
CLASSES = (3, 10, 100)
BUDGET = 300
ROUND = 5  # answers between two candidates
OFFERED = 50  # samples from which they are chosen
TESTED = 2000
SOON = 50  # answers after which a candidate shows what can be gained so soon
DAMAGE = 0.01  # below the source model by more than this counts


@dataclass(frozen=True)
class Outcome:
    """The result of one run."""

    classes: int
    accuracy: float  # asked for
    people: str
    source: float  # measured
    soon: float  # of the candidate after 50 answers
    first: int | None  # answers until the first promotion
    served: float  # in the end
    coded: float  # how often the source model agrees with a wrong code
    damage: float  # the most that the served model was ever below the source model

    @property
    def can_be_known(self) -> bool:
        """True if the source model says more about the truth than chance and the code do."""
        return self.source > max(1 / self.classes, self.coded)


@dataclass
class Service:
    """The audit, the answers, and the versions that answered."""

    world: World
    say: Say
    table: GateTable
    labels_table: ServiceLabelsTable
    known_left: int
    from_stream: bool  # known examples are drifted samples, which people cannot recognise
    learner: Learner
    known: list[bool] = field(default_factory=list)  # whether people were right on them
    pairs: list[tuple[int, int]] = field(default_factory=list)  # of two people
    believed: bool = False
    points: list[Points] = field(default_factory=list)  # of the audit
    labels: list[int] = field(default_factory=list)
    truth: list[int] = field(default_factory=list)
    said: list[Opinion] = field(default_factory=list)
    served: list[Points] = field(default_factory=list)  # centres; the last one answers
    promoted_at: int = 0  # audit answers at the last promotion

    @property
    def share(self) -> float:
        return audit_share(self.labels_table, len(self.labels))

    def ask(self) -> None:
        """Ask questions to check people, for the audit, and where the model is unsure."""
        asked = ROUND - self._check()
        points, truth = self.world.draw(OFFERED)
        audit = int(np.sum(self.world.random.random(asked) < self.share))
        entropies = predict(self.learner.centres, points[audit:])[1]
        unsure = audit + np.argsort(-entropies)[: 2 * ROUND]
        chosen = self.world.random.choice(unsure, asked - audit, replace=False)
        asked = np.concatenate([np.arange(audit), chosen])
        guesses, source_entropies = predict(self.world.source, points)
        labels = self.say(truth, source_entropies)
        for at in asked:
            seen = int(labels[at]), int(guesses[at]), float(source_entropies[at])
            self.said.append(Opinion(*seen, audited=bool(at < audit)))
        self.points += list(points[:audit])
        self.labels += labels[:audit].tolist()
        self.truth += truth[:audit].tolist()
        self.learner.learn(points[chosen], labels[chosen])

    def _check(self) -> int:
        """Check people until they are believed; returns the number of questions."""
        if self.believed or not self.table.trust:
            return 0
        left = self.known_left
        if self.table.second_opinions:
            left = len(self.truth) - len(self.pairs)
        share = self.labels_table.check_share
        checks = len(self.known) + len(self.pairs)
        due = 1 + int(len(self.said) * share / (1 - share)) - checks
        count = min(due, left, ROUND - 1)
        if count <= 0:
            return 0
        if self.table.second_opinions:
            again = slice(len(self.pairs), len(self.pairs) + count)
            said = self.say(np.array(self.truth[again], dtype=int), np.zeros(count))
            self.pairs += zip(self.labels[again], said.tolist(), strict=True)
        else:
            truth, entropies = self._known_examples(count)
            self.known += (self.say(truth, entropies) == truth).tolist()
            self.known_left -= count
        return count

    def _known_examples(self, count: int) -> tuple[Classes, Points]:
        if self.from_stream:
            points, truth = self.world.draw(count)
            return truth, predict(self.world.source, points)[1]
        # The source model is sure of samples that it was trained with.
        return self.world.random.integers(self.world.classes, size=count), np.zeros(count)

    def judge(self) -> bool:
        """Promote the learner's model if it passes; take it back if it falls."""
        candidate = self.learner.centres
        self._doubt()
        window = self.table.audit_window
        found = judge(
            self.table,
            Evidence(
                labels=self.labels[-window:],
                candidate=self._guesses(candidate),
                serving=self._guesses(self.served[-1]),
                source=self._guesses(self.world.source),
                said=self.said,
                classes=self.world.classes,
                known=self.known,
                known_left=self.known_left,
                pairs=self.pairs,
                audit_share=self.share,
            ),
        )
        self.believed = bool(found.numbers.get("believed", False))
        if found.passed:
            self.served.append(candidate)
            self.promoted_at = len(self.labels)
        return found.passed

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
        return guess(centres, np.stack(newest)).tolist() if newest else []


def simulate(
    classes: int,
    accuracy: float,
    people: str,
    seed: int,
    tables: tuple[GateTable, ServiceLabelsTable],
    known: int,
    *,
    from_stream: bool = False,
) -> Outcome:
    """Simulate one run, until the budget is spent."""
    random = np.random.default_rng([classes, round(100 * accuracy), PEOPLE.index(people), seed])
    world = make_world(classes, accuracy, random)
    say = make_people(people, world, random)
    learner = Learner.begin(world.source)
    service = Service(world, say, *tables, known, from_stream, learner, served=[world.source])
    test, truth = world.draw(TESTED)
    source = _accuracy(world.source, test, truth)
    first, served, damage, soon = None, source, 0.0, source
    for answers in range(ROUND, BUDGET + 1, ROUND):
        service.ask()
        before = service.served[-1]
        promoted = service.judge()
        if service.served[-1] is not before:
            served = _accuracy(service.served[-1], test, truth)
            damage = max(damage, source - served)
        if promoted and first is None:
            first = answers
        if answers == SOON:
            soon = _accuracy(service.learner.centres, test, truth)
    wrong_code = people == "wrong code"
    coded = _accuracy(world.source, test, say(truth, test[:, 0])) if wrong_code else 0.0
    return Outcome(classes, accuracy, people, source, soon, first, served, coded, damage)


def _accuracy(centres: Points, points: Points, truth: Classes) -> float:
    return float(np.mean(guess(centres, points) == truth))


def by_people(outcomes: Sequence[Outcome]) -> Iterator[Sequence[str]]:
    yield ("people", "runs", "promoted", "labels", "gain", "damaged", "worst")
    for people in PEOPLE:
        chosen = [one for one in outcomes if one.people == people]
        if not chosen:
            continue
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
        if chosen:
            yield _row(f"{classes}, {accuracy:.0%}", chosen)


def by_gain(outcomes: Sequence[Outcome]) -> Iterator[Sequence[str]]:
    """Honest people only, by what the learner has gained after 50 answers."""
    yield (f"gain after {SOON} answers", "runs", "promoted", "labels", "gain", "damaged", "worst")
    honest = [one for one in outcomes if one.people == "honest"]
    for low, high in ((-1, 0.02), (0.02, 0.1), (0.1, 0.2), (0.2, 0.4), (0.4, 1)):
        chosen = [one for one in honest if low <= one.soon - one.source < high]
        if chosen:
            begin = "less than" if low < 0 else f"{100 * low:.0f} to"
            yield _row(f"{begin} {100 * high:.0f} points", chosen)


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
    parser.add_argument("--accuracies", nargs="+", type=float, default=ACCURACIES)
    parser.add_argument("--known", type=int, default=0, help="number of known examples")
    parser.add_argument("--from-stream", action="store_true", help="known examples are drifted")
    parser.add_argument("--second-opinions", action="store_true", help="of other people")
    labels = ServiceLabelsTable()
    parser.add_argument("--audit-share", type=float, default=labels.audit_share)
    parser.add_argument("--early-audit-share", type=float, default=labels.early_audit_share)
    parser.add_argument("--check-share", type=float, default=labels.check_share)
    options = parser.parse_args()
    table = GateTable(second_opinions=options.second_opinions)
    labels = ServiceLabelsTable(
        audit_share=options.audit_share,
        early_audit_share=options.early_audit_share,
        check_share=options.check_share,
    )
    began = time.perf_counter()
    outcomes = [
        simulate(
            classes,
            accuracy,
            people,
            seed,
            (table, labels),
            options.known,
            from_stream=options.from_stream,
        )
        for people, classes, accuracy, seed in product(
            options.people,
            options.classes,
            options.accuracies,
            range(options.seed, options.seed + options.runs),
        )
    ]
    seconds = time.perf_counter() - began
    print(f"{len(outcomes)} runs of {BUDGET} answers in {seconds:.0f} s")
    show(
        "By people, where the source model is better than chance and than the code",
        by_people(outcomes),
    )
    show("Honest people, by classes and source model", by_source(outcomes, "honest"))
    show("A wrong code, by classes and source model", by_source(outcomes, "wrong code"))
    show("Honest people, by what is gained soon", by_gain(outcomes))


if __name__ == "__main__":
    main()
