"""Measure whether Tent costs more here than in a hand-written loop.

    python benchmarks/tent_loop.py                             # ResNet-18, 128 pixels
    python benchmarks/tent_loop.py --model small_cnn --size 28 --threads 1 --steps 8 --rounds 25

The same weights and the same images go through `attakit.engine.run` with `Tent`, and through the
shortest loop that does the same. That loop is timed in both memory layouts, and the faster one
counts; attakit is always channels-last, which pays from about 128 pixels on. Rounds take turns and
the fastest of each counts, in seconds of the processor, so that other work on the machine matters
little. Prints seconds and the ratio (aim: at most 1.15).
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from attakit.engine import run
from attakit.label import Budget, KnownLabels, Ledger
from attakit.methods import Tent
from attakit.nn.named import named_model
from attakit.nn.norm import norm_parameters
from attakit.queries import SampleId
from attakit.records import Batch, StepResult

LR, MOMENTUM, CLASSES = 1e-3, 0.9, 7


class Answers:
    """Keeps what a run answered, as a reporter."""

    def __init__(self) -> None:
        self.found: list[Tensor] = []

    def on_step(self, result: StepResult) -> None:
        self.found.append(result.step.prediction.logits.argmax(dim=1))

    def close(self) -> None:
        pass


def tent_here(model: nn.Module, images: Sequence[Tensor]) -> Callable[[], list[Tensor]]:
    """Make a function that runs the library's Tent and returns its answers."""
    names = tuple(SampleId(str(number)) for number in range(len(images[0])))
    method = Tent(model, lr=LR, momentum=MOMENTUM)
    batches = [Batch(step, names, inputs) for step, inputs in enumerate(images)]

    def go() -> list[Tensor]:
        answers = Answers()
        run(batches, method, KnownLabels({}), Ledger(Budget(0)), [answers])
        return answers.found

    return go


def tent_by_hand(
    model: nn.Module, images: Sequence[Tensor], layout: torch.memory_format
) -> Callable[[], list[Tensor]]:
    """Make a function that runs Tent as a plain hand-written loop."""
    model = copy.deepcopy(model).to(memory_format=layout).train().requires_grad_(False)  # type: ignore[call-overload]
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean = layer.running_var = None
    parameters = norm_parameters(model)
    for parameter in parameters:
        parameter.requires_grad_(True)
    optimizer = torch.optim.SGD(parameters, lr=LR, momentum=MOMENTUM)

    def go() -> list[Tensor]:
        answers = []
        for inputs in images:
            logits = model(inputs.to(memory_format=layout))
            logs = logits.log_softmax(dim=1)
            loss = -(logs.exp() * logs).sum(dim=1).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            answers.append(logits.argmax(dim=1))
        return answers

    return go


def timed(go: Callable[[], list[Tensor]]) -> tuple[float, Tensor]:
    """Seconds, and the answers."""
    began = time.process_time()
    answers = go()
    return time.process_time() - began, torch.cat(answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = named_model(options.model, classes=CLASSES, channels=3)
    random = torch.Generator().manual_seed(0)
    shape = (options.batch, 3, options.size, options.size)
    images = [torch.randn(shape, generator=random) for _ in range(options.steps)]
    loops = {
        "attakit": tent_here(model, images),
        "by hand": tent_by_hand(model, images, torch.contiguous_format),
        "by hand, channels last": tent_by_hand(model, images, torch.channels_last),
    }
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(options.rounds + 1):
        measured = {name: timed(go) for name, go in loops.items()}
        if number == 0:  # warms the caches up; answers of the same weights must agree
            first, *others = (answers for _, answers in measured.values())
            agreement = min(float((first == other).float().mean()) for other in others)
            continue
        for name, (taken, _) in measured.items():
            seconds[name].append(taken)
    print(
        f"{options.model}, {options.size} px, {options.steps} batches of {options.batch}, "
        f"{options.threads} threads, {options.rounds} rounds; answers agree: {agreement:.1%}"
    )
    best = {name: min(values) for name, values in seconds.items()}
    for name, value in best.items():
        print(f"{name}: {value:.3f} s")
    by_hand = min(value for name, value in best.items() if name != "attakit")
    print(f"ratio to the faster loop by hand: {best['attakit'] / by_hand:.3f} (aim: at most 1.15)")


if __name__ == "__main__":
    main()
