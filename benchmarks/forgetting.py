"""Why does accuracy on the source fall on digits? Is the source-like set too unlike the source?

    python benchmarks/forgetting.py                 # three seeds, about five minutes

Runs SimATTA of experiments/digits/simatta.toml with three kinds of source-like anchors: none; the
confident samples of the stream, as usual; and as many real source images with their true labels,
which nobody has at test time. Prints a Markdown table of accuracy on the stream and on held-out
source images afterwards. If real source images protect no better, the set is not what fails.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import torch

from attakit.bench.build import build_ledger, build_method, build_oracle
from attakit.bench.data import Task, build_stream, load_task
from attakit.bench.load import load_experiment
from attakit.bench.models import source_classifier
from attakit.bench.score import sample_accuracy
from attakit.engine.loop import run
from attakit.methods import SimATTA
from attakit.queries import SampleId
from attakit.randomness import generator
from attakit.records import LabelledRows
from attakit.report.accuracy import Accuracy

EXPERIMENT = Path(__file__).resolve().parent.parent / "experiments" / "digits" / "simatta.toml"
KINDS = {"none": 0.0, "confident samples": "auto", "real source images": 0.0}


def run_one(kind: str, seed: int, overrides: list[str]) -> tuple[float, float]:
    """Accuracy on the stream, and on held-out source images after it."""
    bound = f"method.low_entropy_bound={KINDS[kind]!r}"
    experiment = load_experiment(EXPERIMENT, [f"seed={seed}", bound, *overrides])
    task = load_task(experiment.stream)
    stream = build_stream(experiment, task)
    method = build_method(experiment.method, source_classifier(experiment, task), seed)
    assert isinstance(method, SimATTA)
    assert task.source_test is not None
    if kind == "real source images":
        method.low_entropy_anchors.add(draw_source(method, task, seed))
    accuracy = Accuracy(stream.truth.labels)
    oracle = build_oracle(experiment.labels, stream.truth, seed)
    run(stream.batches(), method, oracle, build_ledger(experiment), [accuracy])
    assert accuracy.stream is not None
    return accuracy.stream, sample_accuracy(method, task.source_test)


def draw_source(method: SimATTA, task: Task, seed: int) -> LabelledRows:
    """As many labelled source images as the source-like set holds."""
    source, count = task.source_train, method.low_entropy_anchors.capacity
    assert source is not None
    places = generator(seed, "source anchors").permutation(len(source))[:count].tolist()
    inputs = source.load(places)
    known = method.predict(inputs)
    return LabelledRows(
        tuple(SampleId(f"source-{place}") for place in places),
        inputs,
        torch.tensor([source.labels[place] for place in places]),
        known.features,
        known.logits,
        torch.ones(len(places)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="TABLE.NAME=VALUE")
    options = parser.parse_args()
    print("| source-like anchors | stream | source | runs |\n|---|---:|---:|---:|")
    for kind in KINDS:
        found = [run_one(kind, seed, options.set) for seed in range(options.seeds)]
        stream, source = (
            f"{statistics.fmean(values):.1f} ± {statistics.pstdev(values):.1f}"
            for values in zip(*found, strict=True)
        )
        print(f"| {kind} | {stream} | {source} | {len(found)} |", flush=True)


if __name__ == "__main__":
    main()
