"""One run of experiments/digits/simatta.toml with something changed, for the other benchmarks."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from attakit.bench.score import percent_right, right_answers
from attakit.build.data import build_stream, load_task
from attakit.build.methods import build_method
from attakit.build.models import source_classifier
from attakit.build.oracles import build_ledger, build_oracle
from attakit.build.task import Task
from attakit.engine.loop import run
from attakit.methods import SimATTA
from attakit.nn.classifier import Classifier
from attakit.report.accuracy import Accuracy
from attakit.settings.load import load_experiment

EXPERIMENT = Path(__file__).resolve().parent.parent / "experiments" / "digits" / "simatta.toml"


def run_digits(
    seed: int,
    overrides: Sequence[str],
    *,
    change_model: Callable[[Classifier], None] = lambda _model: None,
    change_method: Callable[[SimATTA, Task], None] = lambda _method, _task: None,
) -> tuple[float, float]:
    """Accuracy on the stream, and on held-out source images after it."""
    experiment = load_experiment(EXPERIMENT, [f"seed={seed}", *overrides])
    task = load_task(experiment.stream)
    stream = build_stream(experiment, task)
    model = source_classifier(experiment, task)
    change_model(model)
    method = build_method(experiment.method, model, seed)
    assert isinstance(method, SimATTA)
    change_method(method, task)
    accuracy = Accuracy(stream.truth.labels)
    oracle = build_oracle(experiment.labels, stream.truth, seed)
    run(stream.batches(), method, oracle, build_ledger(experiment), [accuracy])
    assert accuracy.stream is not None
    assert task.source_test is not None
    return accuracy.stream, percent_right(right_answers(method, task.source_test))


def parse_options(text: str | None, **counts: int) -> argparse.Namespace:
    """Options of a benchmark: some counts, and settings to override."""
    parser = argparse.ArgumentParser(description=text)
    for name, usual in counts.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.NAME=VALUE")
    return parser.parse_args()


def print_row(name: object, found: Sequence[tuple[float, float]]) -> None:
    """Print a line of a Markdown table: name, stream, source, runs."""
    stream, source = (
        f"{statistics.fmean(values):.1f} ± {statistics.pstdev(values):.1f}"
        for values in zip(*found, strict=True)
    )
    print(f"| {name} | {stream} | {source} | {len(found)} |", flush=True)
