"""The values that flow through the loop. All are frozen, and none holds labels it should not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from attakit.queries import Answer, Query, SampleId
from attakit.targets import Targets

UNKNOWN = -1  # used instead of a label


@dataclass(frozen=True, slots=True)
class Batch:
    """What the stream delivers. It has no labels and no domain, so a method cannot peek."""

    step: int  # 0, 1, 2, … over the whole run
    samples: tuple[SampleId, ...]
    inputs: Tensor  # (batch, *input_shape)

    def __len__(self) -> int:
        return len(self.samples)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The classifier's output for a batch, from one forward pass."""

    logits: Tensor  # (batch, classes)
    features: Tensor  # (batch, dim)

    def detach(self) -> Prediction:
        return Prediction(self.logits.detach(), self.features.detach())


@dataclass(frozen=True, slots=True)
class Rows:
    """Samples as a selector sees them: names and numbers, no labels."""

    samples: tuple[SampleId, ...]
    features: Tensor  # (rows, dim)
    logits: Tensor  # (rows, classes)
    weights: Tensor  # (rows,) how many samples each row stands for

    def __len__(self) -> int:
        return len(self.samples)

    def take(self, positions: Sequence[int]) -> Rows:
        """The rows at the given positions, in that order."""
        at = torch.as_tensor(positions, dtype=torch.long, device=self.logits.device)
        return Rows(
            tuple(self.samples[position] for position in positions),
            self.features[at],
            self.logits[at],
            self.weights[at],
        )

    def join(self, other: Rows) -> Rows:
        """These rows followed by the other's."""
        return Rows(
            self.samples + other.samples,
            torch.cat([self.features, other.features]),
            torch.cat([self.logits, other.logits]),
            torch.cat([self.weights, other.weights]),
        )


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Samples with everything needed to train on them."""

    samples: tuple[SampleId, ...]
    inputs: Tensor  # (rows, *input_shape)
    labels: Tensor  # (rows,) class indices, UNKNOWN where people said something else
    features: Tensor  # (rows, dim)
    logits: Tensor  # (rows, classes)
    weights: Tensor  # (rows,)
    activations: Tensor | None = None  # at the layer where the network is split, if it is split
    targets: Targets | None = None  # what people said, if it is more than labels of weight 1

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def entry(self) -> Tensor:
        """Where a pass over these rows begins: activations if they are stored, else inputs."""
        return self.inputs if self.activations is None else self.activations

    def unlabelled(self) -> Rows:
        """Return the same rows without labels, for a selector."""
        return Rows(self.samples, self.features, self.logits, self.weights)

    def take(self, positions: Sequence[int]) -> LabelledRows:
        """The rows at the given positions, in that order."""
        at = torch.as_tensor(positions, dtype=torch.long, device=self.labels.device)
        return LabelledRows(
            tuple(self.samples[position] for position in positions),
            self.inputs[at],
            self.labels[at],
            self.features[at],
            self.logits[at],
            self.weights[at],
            None if self.activations is None else self.activations[at],
            None if self.targets is None else self.targets.take(at),
        )

    def join(self, other: LabelledRows) -> LabelledRows:
        """These rows followed by the other's."""
        both = self.activations, other.activations
        return LabelledRows(
            self.samples + other.samples,
            torch.cat([self.inputs, other.inputs]),
            torch.cat([self.labels, other.labels]),
            torch.cat([self.features, other.features]),
            torch.cat([self.logits, other.logits]),
            torch.cat([self.weights, other.weights]),
            None if both[0] is None or both[1] is None else torch.cat([both[0], both[1]]),
            None
            if self.targets is None and other.targets is None
            else self.as_targets().join(other.as_targets()),
        )

    def as_targets(self) -> Targets:
        """Return what people said as targets, also if it is labels only."""
        if self.targets is not None:
            return self.targets
        return Targets.of_labels(self.labels, self.logits.shape[1]).to(self.logits)

    def only_labelled(self) -> LabelledRows:
        """Return the rows whose class is known and counts as usual, to learn from labels only."""
        if self.targets is None:
            return self
        plain = (self.labels != UNKNOWN) & (self.targets.weights == 1)
        return replace(self.take(plain.nonzero().flatten().tolist()), targets=None)

    def reweighted(self, weights: Mapping[SampleId, float]) -> LabelledRows:
        """The same rows with new weights for the samples named."""
        if not weights:
            return self
        values = [
            weights.get(sample, float(old))
            for sample, old in zip(self.samples, self.weights.tolist(), strict=True)
        ]
        return replace(self, weights=self.weights.new_tensor(values))

    def state_dict(self) -> dict[str, Any]:
        tensors = {name: getattr(self, name) for name in _TENSORS}
        state = {"samples": list(self.samples), **tensors, "activations": self.activations}
        return state if self.targets is None else {**state, "targets": self.targets.state_dict()}

    @staticmethod
    def from_state(state: Mapping[str, Any] | None) -> LabelledRows | None:
        if state is None:
            return None
        samples = tuple(SampleId(sample) for sample in state["samples"])
        tensors = {name: state[name] for name in _TENSORS}
        targets = Targets.from_state(state["targets"]) if "targets" in state else None
        return LabelledRows(
            samples, **tensors, activations=state.get("activations"), targets=targets
        )


_TENSORS = ("inputs", "labels", "features", "logits", "weights")


@dataclass(frozen=True, slots=True)
class Selection:
    """A selector's choice.

    Parameters
    ----------
    samples
        Chosen candidates, best first.
    weights
        New weights of chosen and known samples, if they change.
    clusters
        Cluster number of every sample considered, if the selector clusters.
    """

    samples: tuple[SampleId, ...] = ()
    weights: Mapping[SampleId, float] = field(default_factory=dict)
    clusters: Mapping[SampleId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """How a step chose its questions: what was considered, what was known, what was taken."""

    candidates: Rows
    known: Rows
    selection: Selection


@dataclass(frozen=True, slots=True)
class Step:
    """A method's response to a batch."""

    prediction: Prediction
    queries: tuple[Query, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)  # kept samples, bounds, …
    choice: Choice | None = None
    batch: Batch | None = None  # the answered batch, if the method chose it from a pool
    seconds: float | None = None  # without loading time, if the method loads samples itself


@dataclass(frozen=True, slots=True)
class Training:
    """What happened when a method learned."""

    updates: int = 0
    numbers: Mapping[str, float] = field(default_factory=dict)  # losses, anchor counts, …


@dataclass(frozen=True, slots=True)
class StepResult:
    """One turn of the loop, as reporters see it."""

    batch: Batch
    step: Step
    answers: tuple[Answer, ...]  # new ones that arrived in this turn, including skips
    training: Training
    seconds: float  # spent by the method in step and learn
    asked: int  # questions asked so far; refunds are not subtracted
    received: int  # answers received so far; skips are not counted
    remaining: float  # labels the budget still allows (infinite without a limit)
    cost: float = 0.0  # cost of the received answers so far, in labels
    counts: Mapping[str, int] = field(default_factory=dict)  # received answers of each kind
