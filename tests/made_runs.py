"""Step results and run folders made by hand, small enough to check by eye."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from attakit.queries import Answer, Query, SampleId
from attakit.records import Batch, Choice, Prediction, Rows, Selection, Step, StepResult, Training
from attakit.report import Accuracy, JsonLines, Pictures, RunRecord

CLASSES = ("zero", "one", "two")
SEGMENTS = ("day", "night")
BATCH = 6
STEPS = 8
SOURCE_BEFORE = 97.0


def rows(names: Sequence[str], step: int) -> Rows:
    noise = torch.Generator().manual_seed(step)
    features = torch.randn(len(names), 5, generator=noise)
    samples = tuple(SampleId(name) for name in names)
    return Rows(samples, features, torch.zeros(len(names), 3), torch.ones(len(names)))


def result(
    step: int,
    predicted: Sequence[int],
    *,
    asked: Sequence[str] = (),
    answers: Sequence[Answer] = (),
    inputs: torch.Tensor | None = None,
    choice: Choice | None = None,
    training: Training | None = None,
    numbers: Mapping[str, float] | None = None,
    remaining: float = 10,
    asked_so_far: int | None = None,
) -> StepResult:
    """One turn of the loop; samples are named `step-position`."""
    names = tuple(SampleId(f"{step}-{place}") for place in range(len(predicted)))
    logits = torch.eye(3)[torch.tensor(list(predicted), dtype=torch.long)] * 4
    shown = torch.rand(len(names), 1, 8, 8) if inputs is None else inputs
    queries = tuple(Query(SampleId(name), step) for name in asked)
    return StepResult(
        Batch(step, names, shown),
        Step(Prediction(logits, torch.zeros(len(names), 5)), queries, numbers or {}, choice),
        tuple(answers),
        training or Training(),
        0.25,
        len(asked) if asked_so_far is None else asked_so_far,
        sum(answer.label is not None for answer in answers),
        remaining,
    )


def write_run(
    folder: Path,
    *,
    label: str = "simatta",
    seed: int = 1,
    steps: int = STEPS,
    pictures: bool = True,
    finished: bool = True,
    right: int = 4,
    classes: Sequence[str] = CLASSES,
    segments: Sequence[str] = SEGMENTS,
    experiment: Mapping[str, Any] | None = None,
) -> Path:
    """A whole run: of each batch the first `right` are answered correctly, one sample is asked."""
    names = [SampleId(f"{step}-{place}") for step in range(steps) for place in range(BATCH)]
    labels = {name: int(name.split("-")[1]) % 3 for name in names}
    where = {name: segments[int(int(name.split("-")[0]) >= steps // 2)] for name in names}
    accuracy = Accuracy(labels, where)
    lines = JsonLines(
        folder / "steps.jsonl",
        experiment=experiment or {"seed": seed, "label": label, "method": {"name": "m"}},
        environment={"torch": "2"},
        segments=segments,
        classes=classes,
        accuracy=accuracy,
        before={"source_accuracy": SOURCE_BEFORE},
        extras=lambda turn: {"source_accuracy": 90.0 + seed} if turn.batch.step % 2 == 0 else {},
    )
    shown = Pictures(folder / "pictures.jsonl", classes=classes, segments=where)
    known: list[str] = []
    for step in range(steps):
        turn = run_step_result(step, right, known)
        known += turn.step.queries and [turn.step.queries[0].sample]
        lines.on_step(turn)
        if pictures:
            shown.on_step(turn)
    if finished:
        figures = {
            "stream_accuracy": accuracy.stream,
            "segments": accuracy.segments,
            "source_accuracy": 90.0 + seed,
            "labels": steps,
            "asked": steps,
            "seconds": 2.0,
            "post_adaptation": {segments[0]: 50.0},
        }
        lines.end(figures)
    lines.close()
    shown.close()
    if not pictures:
        (folder / "pictures.jsonl").unlink()
    return folder


def run_step_result(step: int, right: int, known: Sequence[str]) -> StepResult:
    """Answers come one step late; the answer of step 2 is a skip."""
    predicted = [(place + (place >= right)) % 3 for place in range(BATCH)]
    candidates = [f"{step}-{place}" for place in range(BATCH)]
    chosen = SampleId(candidates[-1 if step % 2 else 0])
    clusters = {SampleId(name): n % 3 for n, name in enumerate([*candidates, *known])}
    weights = {SampleId(name): 1.0 + n for n, name in enumerate(known)}
    selection = Selection((chosen,), weights, clusters)
    answers = []
    if known:
        query = Query(SampleId(known[-1]), step - 1)
        label = None if step == 2 else int(known[-1].split("-")[1]) % 3
        answers.append(Answer(query, label, "me"))
    return result(
        step,
        predicted,
        asked=[chosen],
        answers=answers,
        choice=Choice(rows(candidates, step), rows(known, 99), selection),
        asked_so_far=step + 1,
    )


@pytest.fixture
def make_step_result() -> Callable[..., StepResult]:
    return result


@pytest.fixture
def make_run_step_result() -> Callable[..., StepResult]:
    return run_step_result


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str = "run", **settings: Any) -> Path:
        return write_run(tmp_path / name, **settings)

    return make


PACS_DOMAINS = ("art_painting", "cartoon", "sketch")
SPLITS = ("1", "2", "3", "4")
STEPS_EACH = 4
SUITE_BATCH = 100


def suite_run(
    label,
    *,
    order="domain_after_domain",
    budget=300,
    seed=0,
    base=60.0,
    labels=0,
    batch_size=SUITE_BATCH,
    model="0123456789abcdef",
    data_set="pacs",
    domains=PACS_DOMAINS,
    finished=True,
    after_each=False,
    stream=(),
    pool=False,
    **end,
):
    """A run whose accuracy in segment number n is `base + n`, and whose labels come evenly.

    `stream` has further settings of the stream.
    """
    segments = domains if order == "domain_after_domain" else SPLITS
    steps = []
    total = STEPS_EACH * len(segments)
    for step in range(total):
        number = step // STEPS_EACH
        steps.append(
            {
                "kind": "step",
                "step": step,
                "size": SUITE_BATCH,
                "seconds": 0.5 + 0.25 * number,
                "received": labels * (step + 1) // total,
                "stream_accuracy": base + number / 2,
                "correct": int(base + number),
                "counted": SUITE_BATCH,
                "segments": {segments[number]: [int(base + number), SUITE_BATCH]},
            }
        )
        if step % STEPS_EACH == STEPS_EACH - 1 and after_each:
            steps[-1]["source_accuracy"] = 98.0 - number
            steps[-1]["source_accuracy_whole"] = 99.0 - number
            steps[-1]["domains"] = dict.fromkeys(domains, base + number + 0.5)
    line = {
        "kind": "end",
        "stream_accuracy": base + 1,
        "segments": {name: base + number for number, name in enumerate(segments)},
        "labels": labels,
        "seconds": sum(step["seconds"] for step in steps),
        "source_accuracy": 97.0,
        "post_adaptation": {name: base + 10 + n for n, name in enumerate(domains)},
        **end,
    }
    experiment = {
        "seed": seed,
        "stream": {"name": data_set, "order": order, "batch_size": batch_size, **dict(stream)},
        "method": {"name": label.split()[0].lower(), "label": label},
        "labels": {"budget": budget},
        **({"pool": {"rounds": 3}} if pool else {}),
    }
    before = {"source_accuracy": 99.5, "domains": dict.fromkeys(domains, 50.0)}
    return RunRecord(
        experiment,
        {"model": model},
        list(segments),
        [],
        steps,
        line if finished else None,
        before if after_each else {"source_accuracy": 99.5},
    )


def comparison_runs(seeds=(0, 1)):
    """Tent, which asks nothing, and SimATTA with two budgets, on both streams."""
    runs = []
    for order in ("domain_after_domain", "random"):
        for seed in seeds:
            for budget in (300, 500):
                runs += [
                    suite_run(
                        "SimATTA",
                        order=order,
                        budget=budget,
                        seed=seed,
                        base=70.0 + seed + budget / 100,
                        labels=budget - 50,
                        source_accuracy_whole=98.5,
                        post_adaptation_unlabelled=dict.fromkeys(PACS_DOMAINS, 77.0),
                    ),
                    suite_run(
                        "Tent (steps=1)",
                        order=order,
                        budget=budget,
                        seed=seed,
                        base=60.0 + seed,
                        batch_size=16,
                        source_accuracy_whole=97.5,
                    ),
                ]
    return runs


@pytest.fixture
def make_suite_run() -> Callable[..., RunRecord]:
    return suite_run


@pytest.fixture
def make_comparison() -> Callable[..., list[RunRecord]]:
    return comparison_runs
