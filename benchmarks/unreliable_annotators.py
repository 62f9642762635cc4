"""Measure how many labels are right if people err, and the gain of estimating who errs.

    python benchmarks/unreliable_annotators.py

Simulated teams answer questions about ten classes, five questions at a time. Prints which share of
the settled labels is right (%): of one person's answer, of the majority, and by the reliability
that is estimated on the way (`attakit.label.Crowd`). What it means for a classifier is measured by
`attakit bench experiments/digits/crowd.toml`.
"""

from __future__ import annotations

import argparse
from statistics import fmean, stdev

from attakit.label import Crowd, KnownLabels, Noisy
from attakit.label.crowd import Settling
from attakit.queries import Query, SampleId
from attakit.randomness import derived_seed, generator

CLASSES = 10
AT_ONCE = 5
TEAMS = {
    "5, 10, 30, 50, 70 %": (0.05, 0.1, 0.3, 0.5, 0.7),
    "one of five guesses": (0.1, 0.1, 0.1, 0.1, 0.9),
    "all alike, 20 %": (0.2,) * 5,
    "all alike, 50 %": (0.5,) * 5,
}


def right_labels(
    team: tuple[float, ...], *, questions: int, answers: int, settle: Settling, seed: int
) -> float:
    """The share of settled labels that are right, in percent."""
    draw = generator(seed, "truth")
    names = [SampleId(f"{number}") for number in range(questions)]
    truth = {name: int(draw.integers(CLASSES)) for name in names}
    people = [
        Noisy(
            KnownLabels(truth, annotator=f"person {number}"),
            rate=rate,
            classes=CLASSES,
            seed=derived_seed(seed, "person", number),
        )
        for number, rate in enumerate(team)
    ]
    crowd = Crowd(people, classes=CLASSES, answers=answers, settle=settle, soft=False, seed=seed)
    right = 0
    for start in range(0, questions, AT_ONCE):
        crowd.ask([Query(name, start) for name in names[start : start + AT_ONCE]])
        right += sum(answer.label == truth[answer.query.sample] for answer in crowd.collect())
    return 100 * right / questions


def row(team: tuple[float, ...], *, questions: int, answers: int, seeds: int) -> list[str]:
    """One row of figures: a single answer, the majority, the estimate."""
    ways: list[tuple[Settling, int]] = [
        ("majority", 1),
        ("majority", answers),
        ("reliability", answers),
    ]
    found = []
    for settle, count in ways:
        shares = [
            right_labels(team, questions=questions, answers=count, settle=settle, seed=seed)
            for seed in range(seeds)
        ]
        found.append(f"{fmean(shares):.1f} ± {stdev(shares):.1f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    print(
        "| errors of people | questions | answers to each | one answer | majority | reliability |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for name, team in TEAMS.items():
        for questions, answers in ((50, 3), (150, 2), (150, 3), (150, 5)):
            figures = row(team, questions=questions, answers=answers, seeds=seeds)
            print(f"| {name} | {questions} | {answers} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
