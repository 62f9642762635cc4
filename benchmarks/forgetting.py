"""Find out why source accuracy falls on digits: is the source-like set unlike the source?

    python benchmarks/forgetting.py                 # three seeds, a few minutes

Runs SimATTA of experiments/digits/simatta.toml with three kinds of source-like anchors. The first
has none, and the second the confident samples of the stream, as usual. The third has as many real
source images with their true labels, which are not available at test time. Prints a Markdown table
of accuracy on the stream and on held-out source images afterwards. A loss that even real
source images do not prevent is not the set's fault.
"""

from __future__ import annotations

import torch
from digits_run import parse_options, print_row, run_digits

from attakit.build.task import Task
from attakit.methods import SimATTA
from attakit.queries import SampleId
from attakit.randomness import generator
from attakit.records import LabelledRows

REAL = "real source images"
KINDS = {"none": 0.0, "confident samples": "auto", REAL: 0.0}


def add_source(method: SimATTA, task: Task, seed: int) -> None:
    """Fill the source-like set with labelled source images."""
    source, count = task.source_train, method.low_entropy_anchors.capacity
    assert source is not None
    places = generator(seed, "source anchors").permutation(len(source))[:count].tolist()
    inputs = source.load(places)
    known = method.predict(inputs)
    rows = LabelledRows(
        tuple(SampleId(f"source-{place}") for place in places),
        inputs,
        torch.tensor([source.labels[place] for place in places]),
        known.features,
        known.logits,
        torch.ones(len(places)),
    )
    method.low_entropy_anchors.add(rows)


def run_one(kind: str, seed: int, overrides: list[str]) -> tuple[float, float]:
    """Accuracy on the stream and on the source with one kind of source-like anchors."""
    settings = [f"method.low_entropy_bound={KINDS[kind]!r}", *overrides]
    if kind != REAL:
        return run_digits(seed, settings)
    return run_digits(
        seed, settings, change_method=lambda method, task: add_source(method, task, seed)
    )


def main() -> None:
    options = parse_options(__doc__, seeds=3)
    print("| source-like anchors | stream | source | runs |\n|---|---:|---:|---:|")
    for kind in KINDS:
        print_row(kind, [run_one(kind, seed, options.set) for seed in range(options.seeds)])


if __name__ == "__main__":
    main()
