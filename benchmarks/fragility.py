"""Measure how much runs on digits differ after a negligible change of the weights.

    python benchmarks/fragility.py                  # three seeds, three times each, a few minutes

Runs SimATTA of experiments/digits/simatta.toml several times from the same source model, whose
weights are changed by one part in ten million.
Prints a Markdown table of the deviation between such runs. Differences between settings that are
not larger mean nothing.
"""

from __future__ import annotations

import torch
from digits_run import parse_options, print_row, run_digits

from attakit.nn.classifier import Classifier
from attakit.nn.seeding import torch_generator

CHANGE = 1e-7


def change(model: Classifier, repetition: int) -> None:
    """Change all weights by about a ten-millionth; the first repetition has them as they are."""
    random = torch_generator(repetition, "change", device=model.device)
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=random, device=weight.device)
            weight.mul_(1 + CHANGE * bool(repetition) * noise)


def main() -> None:
    options = parse_options(__doc__, seeds=3, repetitions=3)
    print("| seed | stream | source | runs |\n|---:|---:|---:|---:|")
    for seed in range(options.seeds):
        found = [
            run_digits(seed, options.set, change_model=lambda model, n=number: change(model, n))
            for number in range(options.repetitions)
        ]
        print_row(seed, found)


if __name__ == "__main__":
    main()
