"""Find out why SimATTA's first ten labels cost the source: change one setting at a time.

    python benchmarks/first_labels.py        # needs checkpoints/pacs-photo-resnet18.safetensors

SimATTA sees one batch of 100 paintings of PACS and learns ten labels. Prints a Markdown table:
accuracy after it on held-out photos and on the next 100 paintings. Rows are the settings of version
0.1 with the paper's learning rate, the same with one change each, and today's defaults. The source
model is that of experiments/fast/source-resnet18.toml.
"""

from __future__ import annotations

import argparse
from itertools import islice
from typing import Any

import torch

from attakit.bench.score import percent_right, right_answers
from attakit.build.data import build_stream, load_task
from attakit.build.methods import build_method
from attakit.build.models import source_classifier
from attakit.build.task import Task
from attakit.protocols import Method
from attakit.queries import Allowance, Answer
from attakit.settings.experiment import Experiment
from attakit.settings.load import parse_experiment

LABELS = 10
BEFORE: dict[str, Any] = {"name": "simatta", "trainable": "all", "norm": "frozen"}
BALANCED: dict[str, Any] = {"name": "balanced", "lr": 1e-3, "max_updates": 40}
SOFT: dict[str, Any] = {"name": "distilling", "lr": 1e-3, "updates_per_label": 4.0, "enough": 1e-9}


def balanced(**changes: Any) -> dict[str, Any]:
    return {**BEFORE, "trainer": {**BALANCED, **changes}}


VARIANTS: dict[str, dict[str, Any] | None] = {
    "source model": None,
    "version 0.1": balanced(),
    "a third of the learning rate (3e-4)": balanced(lr=3e-4),
    "10 updates instead of 40": balanced(max_updates=10),
    "last stages instead of all": {**balanced(), "trainable": "auto"},
    "blended statistics": {**balanced(), "norm": "blended"},
    "no source-like anchors": {**balanced(), "low_entropy_bound": 0.0},
    "source-like anchors up to entropy 0.2": {**balanced(), "low_entropy_bound": 0.2},
    "soft answers, and Adam at 1e-4": {**BEFORE, "trainer": {**SOFT, "lr": 1e-4}},
    "hard answers, and Adam at 1e-4": {
        **BEFORE,
        "trainer": {**SOFT, "lr": 1e-4, "temperature": 0.05},
    },
    "today's defaults": {"name": "simatta"},
}


def measure(settings: dict[str, Any] | None, experiment: Experiment, task: Task) -> list[str]:
    """Accuracy on held-out photos and on the next paintings, updates, and source-like anchors."""
    table = parse_experiment({"method": settings or {"name": "source_only"}}).method
    model = source_classifier(experiment, task)
    method = build_method(table, model, experiment.seed, task.source_train)
    stream = build_stream(experiment, task)
    first, following = islice(stream.batches(), 2)
    updates = 0
    if settings is not None:
        step = method.step(first, Allowance(LABELS))
        answers = [Answer(each, stream.truth.labels[each.sample], "truth") for each in step.queries]
        updates = method.learn(answers).updates
    answers_after = method.predict(following.inputs).logits.argmax(dim=1).tolist()
    truth = [stream.truth.labels[name] for name in following.samples]
    right = sum(one == other for one, other in zip(answers_after, truth, strict=True))
    return [photos(method, task), f"{100 * right / len(truth):.0f}", str(updates)]


def photos(method: Method, task: Task) -> str:
    assert task.source_test is not None
    return f"{percent_right(right_answers(method, task.source_test)):.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--weights", default="checkpoints/pacs-photo-resnet18.safetensors")
    options = parser.parse_args()
    torch.set_num_threads(1)
    experiment = parse_experiment(
        {
            "seed": options.seed,
            "stream": {"name": "pacs", "size": 128, "share": 0.333, "batch_size": 100},
            "model": {"name": "resnet18", "weights": options.weights},
        }
    )
    task = load_task(experiment.stream)
    print("| change | held-out photos | next paintings | updates |\n|---|---:|---:|---:|")
    for name, settings in VARIANTS.items():
        print(f"| {name} | {' | '.join(measure(settings, experiment, task))} |", flush=True)


if __name__ == "__main__":
    main()
