"""The base of all methods: a copy of the model, the frame of a step, and saving."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from attakit.errors import StateError
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place, prepare
from attakit.nn.frozen_head import FrozenHead, copy_sharing
from attakit.nn.frozen_styles import freeze_styles
from attakit.queries import Allowance, Answer
from attakit.records import Batch, Prediction, Step, Training


class BaseMethod:
    """Holds a copy of the model, answers with it, and saves what `stateful` lists.

    A subclass overrides `adapt`. A method that asks for labels derives from `AskingMethod` instead.
    Everything that changes during a run must be listed in `stateful`, the model first.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied and never changed.
    """

    stateful: ClassVar[tuple[str, ...]] = ("model",)
    step_count: int = -1  # number of the latest batch

    def __init__(self, model: nn.Module) -> None:
        given = model if isinstance(model, Classifier) else Classifier(model)
        self.model = prepare(copy.deepcopy(given), given.device).eval()
        self.model.requires_grad_(False)
        self.model.use_norm("frozen")

    @property
    def next_step(self) -> int:
        """The number of the next batch, if streams follow each other."""
        return self.step_count + 1

    @property
    def adapted_model(self) -> nn.Module:
        """The current copy of the caller's model. Its weights fit the original.

        Blended statistics are frozen in it, so that it answers each sample alone. If the stream
        mixes styles, it is one module with the statistics of each. The parameters are shared with
        the method and change with it. Copy the model to keep it.
        """
        return without_stream(self.model)

    def place(self, inputs: Tensor) -> Tensor:
        """Move a batch to the model's device, once."""
        return place(inputs, self.model.device)

    def predict(self, inputs: Tensor) -> Prediction:
        """Answer without changing anything."""
        return self.answer(self.model, self.place(inputs))

    def answer(self, model: Classifier, inputs: Tensor) -> Prediction:
        """Run one forward pass without gradients; an empty batch gets an empty answer."""
        with torch.no_grad():
            if len(inputs):
                prediction: Prediction = model(inputs)
                return prediction
            blank = model(inputs.new_zeros((1, *inputs.shape[1:])))
            return Prediction(blank.logits[:0], blank.features[:0])

    def step(self, batch: Batch, allowance: Allowance) -> Step:
        """Move the batch to the model's device, then answer it and adapt to it."""
        self.step_count = batch.step
        batch = replace(batch, inputs=self.place(batch.inputs))
        if len(batch) == 0:
            return Step(self.predict(batch.inputs))
        return self.respond(batch, allowance)

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        """Answer a batch that is on the device and not empty. The base asks no questions."""
        del allowance
        return self.adapt(batch.inputs)

    def adapt(self, inputs: Tensor) -> Step:
        """Answer inputs and adapt to them without labels. The base does not adapt."""
        return Step(self.predict(inputs))

    def learn(self, answers: Sequence[Answer]) -> Training:
        """Learn from labels. The base ignores them."""
        del answers
        return Training()

    def after_update(self) -> None:
        """Run after every update of `model`; does nothing in most methods.

        Code that trains a method's model from outside, like `Enhanced`, calls this after each
        update. A method overrides it if an update is more than a gradient step.
        """

    def state_dict(self) -> dict[str, Any]:
        return {name: _state(getattr(self, name)) for name in self.stateful}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if set(state) != set(self.stateful):
            raise StateError(
                f"{type(self).__name__}: the saved state has {sorted(state)}, but this method "
                f"needs {sorted(self.stateful)}. Continue it with the method, the settings and the "
                "version of attakit that wrote it."
            )
        for name in self.stateful:
            try:
                self._load(name, state[name])
            except (KeyError, RuntimeError, TypeError, ValueError) as error:
                raise StateError(
                    f"{type(self).__name__}: the saved {name} does not fit, so it belongs to "
                    f"another model or other settings ({error}). Continue it with the model, the "
                    f"method, the settings and the version of attakit that wrote it."
                ) from error

    def _load(self, name: str, state: Any) -> None:
        part = getattr(self, name)
        if isinstance(part, Optimizer):
            # lr and momentum are in its state too, but the current settings count.
            state = {**state, "param_groups": part.state_dict()["param_groups"]}
        if hasattr(part, "load_state_dict"):
            part.load_state_dict(state)
        else:
            setattr(self, name, state)


def without_stream(classifier: Classifier) -> nn.Module:
    """Return the model of a classifier; blended statistics are frozen in a copy of it."""
    model: nn.Module = classifier.model
    if classifier.stream is None:
        return model
    frozen = copy_sharing(model)
    styles = freeze_styles(classifier.stream.styles.groups, frozen)
    return frozen if styles is None else FrozenHead(frozen, styles=styles)


def _state(part: Any) -> Any:
    return part.state_dict() if hasattr(part, "state_dict") else part
