"""Any classifier, as the rest of the library sees it: one pass gives logits and features."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from attakit.errors import ModelError, check_choice
from attakit.records import Prediction

Precision = Literal["full", "mixed"]


class EncoderHead(nn.Module):
    """A classifier given as two parts."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.encoder(inputs).flatten(1))
        return logits


class Classifier(nn.Module):
    """A model that maps a batch to logits, with its penultimate features.

    Parameters
    ----------
    model
        Any module from a batch to logits of shape (batch, classes), or an (encoder, head) pair.
        One logit per sample counts as two classes.
    features
        Name of the layer whose input is taken as features. Found without help when the model
        ends in a linear layer: then it is the input of the linear layer that runs last.
    precision
        "full", or "mixed" for bfloat16 autocasting, which pays on GPUs.

    Examples
    --------
    >>> classifier = Classifier(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    >>> prediction = classifier(torch.zeros(2, 4))
    >>> prediction.logits.shape, prediction.features.shape
    (torch.Size([2, 3]), torch.Size([2, 8]))
    """

    def __init__(
        self,
        model: nn.Module | tuple[nn.Module, nn.Module],
        *,
        features: str | None = None,
        precision: Precision = "full",
    ) -> None:
        super().__init__()
        check_choice("Classifier", "precision", precision, ("full", "mixed"))
        if isinstance(model, tuple):
            model, features = EncoderHead(*model), "head"
        if not isinstance(model, nn.Module):
            raise ModelError(
                f"Classifier: the model must be a torch.nn.Module or an (encoder, head) pair, "
                f"got {type(model).__name__}."
            )
        if next(model.parameters(), None) is None:
            raise ModelError("Classifier: the model has no parameters, so there is nothing to use.")
        self.model = model
        self.features = features
        self.precision = precision
        self._assumed_head: nn.Module | None = None
        self._candidates()

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def head(self) -> nn.Module:
        """The last layer. Before it has been seen to run, the one that was registered last."""
        if self._assumed_head is None:
            self._assumed_head = self._candidates()[-1]
        return self._assumed_head

    def forward(self, inputs: Tensor) -> Prediction:
        seen: list[tuple[nn.Module, Tensor]] = []

        def remember(layer: nn.Module, arguments: tuple[Tensor, ...]) -> None:
            seen[:] = [(layer, arguments[0])]

        hooks = [layer.register_forward_pre_hook(remember) for layer in self._candidates()]
        try:
            output = self._run(inputs)
        finally:
            for hook in hooks:
                hook.remove()
        logits = _two_or_more_columns(_as_tensor(output), len(inputs))
        return Prediction(logits.float(), self._features(seen, len(inputs)).float())

    def _run(self, inputs: Tensor) -> object:
        try:
            with torch.autocast(
                self.device.type, torch.bfloat16, enabled=self.precision == "mixed"
            ):
                return self.model(inputs)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise ModelError(
                f"Classifier: {type(self.model).__name__} failed on inputs of shape "
                f"{tuple(inputs.shape)} and type {inputs.dtype}: {error}. Check that the stream "
                f"delivers what the model was trained on (size, channels, type)."
            ) from error

    def _candidates(self) -> list[nn.Module]:
        """Layers whose input may be the features."""
        if self.features is not None:
            layers = dict(self.model.named_modules())
            if self.features not in layers:
                raise ModelError(
                    f"Classifier: the model has no layer named {self.features!r}. "
                    f"Its last layers are {', '.join(list(layers)[-5:])}."
                )
            return [layers[self.features]]
        linear: list[nn.Module] = [m for m in self.model.modules() if isinstance(m, nn.Linear)]
        if not linear:
            raise ModelError(
                f"Classifier: {type(self.model).__name__} has no linear layer, so its features "
                f'are not clear. Name the layer whose input they are (features="…") or pass an '
                f"(encoder, head) pair."
            )
        return linear

    def _features(self, seen: list[tuple[nn.Module, Tensor]], rows: int) -> Tensor:
        if not seen:
            raise ModelError(
                "Classifier: the layer that should show the features did not run. "
                'Name another one (features="…") or pass an (encoder, head) pair.'
            )
        layer, features = seen[0]
        if features.shape[0] != rows:
            raise ModelError(
                f"Classifier: {rows} inputs gave features of shape {tuple(features.shape)}; the "
                f'first dimension must be the batch. Name another layer (features="…").'
            )
        if self._assumed_head not in (None, layer):
            raise ModelError(
                "Classifier: the linear layer that runs last is not the one registered last, so "
                'the head is not clear. Name it (features="…") or pass an (encoder, head) pair.'
            )
        self._assumed_head = layer
        return features.flatten(1)


def _as_tensor(output: object) -> Tensor:
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor):
        raise ModelError(
            f"Classifier: the model returned {type(output).__name__}; it must return a tensor of "
            f"logits (or an object with .logits). Wrap it in a module that does."
        )
    return logits


def _two_or_more_columns(logits: Tensor, rows: int) -> Tensor:
    if logits.shape in ((rows,), (rows, 1)):
        positive = logits.reshape(rows, 1)
        return torch.cat([torch.zeros_like(positive), positive], dim=1)
    if logits.ndim != 2 or logits.shape[0] != rows:
        raise ModelError(
            f"Classifier: {rows} inputs gave logits of shape {tuple(logits.shape)}; expected "
            f"({rows}, classes). Only classifiers with one label per input can be adapted."
        )
    return logits
