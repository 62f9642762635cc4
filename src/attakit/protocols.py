"""The parts of the loop, on one screen. Classes match these by shape; nothing must inherit them.

A method may have capabilities beyond `Method`. It declares each one by having the members of the
capability's protocol. `Asks` and `LearnsAtOnce` have no members, so a method class inherits them.

`Oracle` and `Stateful` are in `attakit.queries`, because labelling works without torch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn
from torch.optim import Optimizer

from attakit.nn.classifier import Classifier
from attakit.nn.split import Split
from attakit.queries import Allowance, Answer, Oracle, SampleId, Stateful
from attakit.records import Batch, Prediction, Rows, Selection, Step, StepResult, Training
from attakit.store.anchors import Anchors

__all__ = [
    "Asks",
    "CountsSteps",
    "Forgets",
    "HasServiceSettings",
    "KeepsLabelled",
    "KeepsSourceLike",
    "LearnsAtOnce",
    "Method",
    "NeedsSource",
    "Optimizes",
    "Oracle",
    "Reporter",
    "Selector",
    "SetsPace",
    "ShowsModel",
    "Stateful",
    "Trainer",
]


class Method(Stateful, Protocol):
    """Answers a stream and adapts to it."""

    def predict(self, inputs: Tensor) -> Prediction:
        """Answer without changing anything. Two calls in a row agree."""

    def step(self, batch: Batch, allowance: Allowance) -> Step:
        """Answer the batch, adapt without labels, name the samples to ask about.

        The answer uses the model as it was when the batch arrived. The questions stay within the
        allowance.
        """

    def learn(self, answers: Sequence[Answer]) -> Training:
        """Use the labels that have arrived: maybe none, late, or from several batches."""


class Asks:
    """Marks a method class that asks for labels. A class declares it by inheriting."""


class LearnsAtOnce:
    """Marks a method class whose `learn` takes milliseconds. A class declares it by inheriting.

    The service then learns from settled answers before it looks at the next batch.
    """


@runtime_checkable
class CountsSteps(Protocol):
    """A method that can run through several streams, one after the other."""

    @property
    def next_step(self) -> int:
        """The number that its next batch should have."""


@runtime_checkable
class ShowsModel(Protocol):
    """A method whose model can be saved, exported and served."""

    @property
    def adapted_model(self) -> nn.Module:
        """The adapted model, as it is now.

        Its weights fit the caller's own model, unless it is a `FrozenHead`. That one contains the
        model, and the service then saves only what differs from it.
        """


@runtime_checkable
class Optimizes(Protocol):
    """A method that trains its model with an optimizer that a wrapper may use too."""

    @property
    def optimizer(self) -> Optimizer: ...


@runtime_checkable
class KeepsSourceLike(Protocol):
    """A method that keeps samples like those of the source, with the source model's labels."""

    @property
    def source_like_anchors(self) -> Anchors: ...


@runtime_checkable
class KeepsLabelled(Protocol):
    """A method that keeps the samples that people labelled."""

    @property
    def labelled_anchors(self) -> Anchors: ...


@runtime_checkable
class Forgets(Protocol):
    """A method that keeps samples, and can remove some on request."""

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove inputs and labels of these samples. What was learned from them stays learned."""


@runtime_checkable
class NeedsSource(Protocol):
    """A method with a setting `source_inputs`: inputs like those its model was trained on.

    If it has a setting `source_labels` too, it gets the class of each of them.
    """

    @staticmethod
    def source_input_count(settings: Mapping[str, Any]) -> int:
        """How many source inputs are of use with these settings of the method."""


@runtime_checkable
class HasServiceSettings(Protocol):
    """A method some of whose settings have another default in a service."""

    @staticmethod
    def service_settings() -> Mapping[str, Any]:
        """These settings, with their defaults in a service."""


class Selector(Protocol):
    """Decides which samples deserve a label."""

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, given what is already covered.

        Pure: the same arguments give the same choice, so asking twice is harmless.
        """


@runtime_checkable
class SetsPace(Protocol):
    """A selector that may decide how many samples to ask about, instead of a rate of labels."""

    @property
    def sets_pace(self) -> bool: ...


class Trainer(Stateful, Protocol):
    """Turns anchors into weights."""

    def fit(self, model: Classifier | Split, low: Anchors, high: Anchors, step: int) -> Training:
        """Train the model in place on pseudo-labelled (low) and labelled (high) anchors.

        The model is called on `rows.entry`: inputs, or activations where it is split.
        """


class Reporter(Protocol):
    """Observes a run and never steers it."""

    def on_step(self, result: StepResult) -> None: ...
    def close(self) -> None: ...
