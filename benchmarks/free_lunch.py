"""Compare methods that ask for labels with the best one that does not, on corruptions.

    python benchmarks/free_lunch.py                                        # corrupted digits
    python benchmarks/free_lunch.py --data abalone --severities 0 \\
        --orders domain_after_domain random correlated                     # the set as it is
    python benchmarks/free_lunch.py --data letters --weights checkpoints/letters-print.safetensors
    python benchmarks/free_lunch.py --data photos --model resnet18 \\
        --weights checkpoints/pacs-photo-resnet18.safetensors

Held-out source images are corrupted as `attakit corrupt` does, and streamed corruption after
corruption and mixed. Severity 0 streams the target domains of the set itself. Prints a Markdown
table for each severity and stream: accuracy on the stream, mean ± standard deviation over seeds,
and what a method with labels gains over the best one without. A method that asks must not lose more
than half a point to it, and should gain. `benchmarks/letters.py` draws the letters; photos are
those of PACS.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from simatta_defaults import run_one
from torch import Tensor

from attakit.build.data import load_task
from attakit.build.task import Task
from attakit.randomness import derived_seed
from attakit.settings.load import parse_experiment
from attakit.stream.corruptions import SMALLEST_SIDE, corrupt_image
from attakit.stream.samples import ArraySamples, Domains, Samples

MOST_LOST = 0.5  # points that labels may cost
WITHOUT_LABELS: dict[str, dict[str, Any]] = {
    "source only": {"name": "source_only"},
    "batch norm": {"name": "batch_norm"},
    "Tent": {"name": "tent"},
    "EATA": {"name": "eata"},
    "SAR": {"name": "sar"},
    "LAME": {"name": "lame"},
    "anchor head, no labels": {"name": "anchor_head"},
}
WITH_LABELS: dict[str, dict[str, Any]] = {
    "SimATTA": {"name": "simatta"},
    "anchor head": {"name": "anchor_head"},
}
STREAMS = {
    "digits": {"name": "digits"},
    "letters": {"name": "folders", "root": "data/letters", "source": "print", "size": 32},
    "photos": {"name": "pacs", "size": 128},
    "abalone": {"name": "abalone"},
    "names": {"name": "names"},
}
MODELS = {"abalone": "small_mlp", "names": "small_text"}  # of the others: small_cnn
ORDERS = {
    "domain_after_domain": "domain after domain",
    "random": "mixed",
    "correlated": "classes in runs",
}


def main() -> None:
    """Print a table for each severity and order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=STREAMS, default="digits")
    parser.add_argument("--model", help="by default a small one of the set")
    parser.add_argument("--weights", help="of the source model; digits have their own")
    parser.add_argument("--corruptions", nargs="+", default=CORRUPTIONS)
    parser.add_argument("--severities", type=int, nargs="+", default=[1, 3, 5])
    parser.add_argument("--orders", choices=ORDERS, nargs="+", default=[*ORDERS][:2])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--budget", type=int, default=100)
    every = {**WITHOUT_LABELS, **WITH_LABELS}
    parser.add_argument("--methods", choices=every, nargs="+", default=[*every])
    options = parser.parse_args()
    torch.set_num_threads(1)
    name = options.model or MODELS.get(options.data, "small_cnn")
    model = {"name": name, "weights": options.weights}
    tables: dict[str, Any] = {
        "stream": STREAMS[options.data],
        "model": {name: value for name, value in model.items() if value is not None},
    }
    clean = load_task(parse_experiment(tables).stream)
    lost = []
    for severity in options.severities:
        task = corrupted(clean, options.corruptions, severity) if severity else clean
        for order in options.orders:
            title = f"{options.data}, {name}, severity {severity}, {ORDERS[order]}"
            own = {**tables, "stream": {**tables["stream"], "order": order}}
            chosen = {each: every[each] for each in every if each in options.methods}
            lost += print_table(title, task, own, chosen, options.seeds, options.budget)
    print("\n" + ("\n".join(lost) or f"No method with labels loses more than {MOST_LOST} points."))


CORRUPTIONS = (
    "gaussian_noise",
    "impulse_noise",
    "defocus_blur",
    "fog",
    "contrast",
    "jpeg_compression",
)


def corrupted(task: Task, names: Sequence[str], severity: int) -> Task:
    """The held-out source images under each corruption, as target domains."""
    test = task.source_test
    assert test is not None
    pixels = as_bytes(test, task)
    parts: dict[str, Samples] = {}
    for name in names:
        found = [
            corrupt_image(picture, name, severity, seed=derived_seed(0, name, str(number)) % 2**32)
            for number, picture in enumerate(pixels)
        ]
        inputs = as_inputs(np.stack(found), task, test.shape)
        parts[name] = ArraySamples(inputs, test.labels, prefix=f"{name}/")
    return replace(task, targets=Domains(task.classes, parts))


def as_bytes(samples: Samples, task: Task) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Pictures (count, height, width, 3) as they were before normalisation, with enough pixels."""
    inputs = samples.load(range(len(samples)))
    mean, std = scale(task)
    pictures = (inputs * std + mean).clamp(0, 1).mul(255).round().byte()
    border = max(0, (SMALLEST_SIDE - inputs.shape[-1] + 1) // 2)
    padded = torch.nn.functional.pad(pictures, (border, border, border, border))
    return padded.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).contiguous().numpy()


def as_inputs(
    pictures: np.ndarray[Any, np.dtype[np.uint8]], task: Task, shape: Sequence[int]
) -> Tensor:
    """Pictures in the shape of the task, normalised."""
    channels, height, _ = shape
    border = (pictures.shape[1] - height) // 2
    inside = slice(border, border + height)
    found = torch.from_numpy(pictures)[:, inside, inside].permute(0, 3, 1, 2).float() / 255
    mean, std = scale(task)
    return ((found if channels == 3 else found.mean(dim=1, keepdim=True)) - mean) / std


def scale(task: Task) -> tuple[Tensor, Tensor]:
    """How inputs of a task are normalised."""
    assert task.mean is not None
    assert task.std is not None
    return torch.tensor(task.mean).view(1, -1, 1, 1), torch.tensor(task.std).view(1, -1, 1, 1)


def print_table(
    title: str,
    task: Task,
    tables: dict[str, Any],
    methods: dict[str, dict[str, Any]],
    seeds: Sequence[int],
    budget: int,
) -> list[str]:
    """Run every method with every seed; return a sentence about each that loses."""
    print(f"\n{title}, seeds {', '.join(map(str, seeds))}\n")
    print("| method | stream | labels | over the best without labels |\n|---|---:|---:|---:|")
    free: dict[str, float] = {}
    lost = []
    for name, settings in methods.items():
        labels = {"budget": budget if name in WITH_LABELS else 0}
        own = {**tables, "labels": labels}
        found = [run_one(settings, task, seed, own, source_every=0) for seed in seeds]
        stream = [each.stream for each in found]
        mean, spread = statistics.fmean(stream), statistics.pstdev(stream)
        gain = ""
        if name in WITH_LABELS and free:
            best = max(free, key=lambda each: free[each])
            gain = f"{mean - free[best]:+.1f} ({best})"
            if mean < free[best] - MOST_LOST:
                lost.append(f"{name} loses to {best} by {free[best] - mean:.1f} points: {title}.")
        elif name in WITHOUT_LABELS:
            free[name] = mean
        asked = statistics.fmean(each.labels for each in found)
        print(f"| {name} | {mean:.1f} ± {spread:.1f} | {asked:.0f} | {gain} |", flush=True)
    return lost


if __name__ == "__main__":
    main()
