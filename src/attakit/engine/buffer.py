"""A buffer of unlabelled samples: small batches are answered at once and learned from together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from attakit.errors import SettingError, check_count
from attakit.protocols import Method
from attakit.queries import Allowance, SampleId
from attakit.records import Batch, Step


class Buffer:
    """Collects the samples of small batches until a method can choose among enough of them.

    Every batch is answered when it arrives. The method's `step` gets all collected samples as one
    batch when there are enough, or when the stream ends. The SimATTA paper suggests such a buffer
    (appendix, Q3): in a batch of one sample there is nothing to choose.

    Parameters
    ----------
    samples
        How many samples to collect; 0 passes every batch on unchanged.
    first_step
        Number of the first collected batch.

    Examples
    --------
    >>> from attakit.methods import SourceOnly
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method, buffer = SourceOnly(tiny_classifier()), Buffer(samples=20)
    >>> for number in range(3):
    ...     step, seconds = buffer.answer(tiny_batch(number, size=8), method, Allowance(1))
    ...     print(len(step.prediction.logits), buffer.stepped and len(buffer.stepped))
    8 None
    8 None
    8 24
    """

    def __init__(self, samples: int = 0, *, first_step: int = 0) -> None:
        check_count("Buffer", "samples", samples, at_least=0)
        self.samples = samples
        self.next_step = first_step
        self.stepped: Batch | None = None  # last batch given to the method's step; None if it waits
        self._held: list[Batch] = []

    def __len__(self) -> int:
        return sum(len(batch) for batch in self._held)

    def answer(self, batch: Batch, method: Method, allowance: Allowance) -> tuple[Step, float]:
        """Answer a batch, and let the method step if enough samples are collected.

        Returns the answer to this batch, with the questions about all collected samples, and the
        method's seconds.
        """
        began = time.perf_counter()
        step = self._answer(batch, method, allowance)
        seconds = time.perf_counter() - began
        return step, seconds if step.seconds is None else step.seconds

    def _answer(self, batch: Batch, method: Method, allowance: Allowance) -> Step:
        if not self._held and len(batch) >= self.samples:
            self.stepped = batch
            return _checked(method, method.step(batch, allowance))
        prediction = method.predict(batch.inputs)
        self._held.append(batch)
        left = allowance.samples_left
        is_last = left is not None and left <= len(batch)
        self.stepped = self._together() if len(self) >= self.samples or is_last else None
        if self.stepped is None:
            return Step(prediction)
        earlier = len(self.stepped) - len(batch)
        total = allowance if left is None else replace(allowance, samples_left=left + earlier)
        return replace(
            _checked(method, method.step(self.stepped, total)), prediction=prediction, batch=None
        )

    def _together(self) -> Batch:
        """Join all collected samples into one batch; duplicates count once."""
        inputs = torch.cat([batch.inputs for batch in self._held])
        names = [name for batch in self._held for name in batch.samples]
        first = list({name: names.index(name) for name in names}.values())
        joined = Batch(self.next_step, tuple(names[row] for row in first), inputs[first])
        self._held = []
        self.next_step += 1
        return joined

    def state_dict(self) -> dict[str, Any]:
        return {
            "next_step": self.next_step,
            "samples": [[str(name) for name in batch.samples] for batch in self._held],
            "inputs": [batch.inputs for batch in self._held],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.next_step = state["next_step"]
        self._held = [
            Batch(0, tuple(SampleId(name) for name in names), inputs)
            for names, inputs in zip(state["samples"], state["inputs"], strict=True)
        ]


def _checked(method: Method, step: object) -> Step:
    if not isinstance(step, Step):
        raise SettingError(
            f"{type(method).__name__}: step must return a Step, got {type(step).__name__}. "
            f"docs/add-a-method.md shows one."
        )
    return step
