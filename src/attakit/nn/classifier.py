"""A wrapper for any classifier: one pass gives logits and features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Literal

import torch
from torch import Tensor, nn

from attakit.errors import ModelError, check_choice, nearest_hint
from attakit.nn.blended import SOURCE_SHARE, WINDOW, SourceShare, StreamStatistics, stop_blending
from attakit.nn.group_norm import safe_group_norm
from attakit.nn.layout import channels_last
from attakit.nn.norm import (
    NORM_POLICIES,
    NormPolicy,
    use_batch_statistics,
    use_stored_statistics,
)
from attakit.nn.shapes import as_logits, as_rows
from attakit.nn.styles import StyleGroups
from attakit.queries import SampleId
from attakit.records import Prediction

Precision = Literal["full", "mixed"]
PRECISIONS: tuple[Precision, ...] = ("full", "mixed")

# What a model raises on unsuitable inputs. Out of memory is not among them.
_INPUT_FAULTS = (AssertionError, IndexError, RuntimeError, TypeError, ValueError)


class EncoderHead(nn.Module):
    """A classifier given as two parts.

    Examples
    --------
    >>> EncoderHead(nn.Flatten(), nn.Linear(4, 2))(torch.zeros(3, 2, 2)).shape
    torch.Size([3, 2])
    """

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.encoder(inputs).flatten(1))
        return logits


class Classifier(nn.Module):
    """A model that maps a batch to logits, with its penultimate features.

    The model is used directly, not copied. A classifier serves one thread at a time.

    Parameters
    ----------
    model
        Any module from a batch to logits of shape (batch, classes), or an (encoder, head) pair.
        One logit per sample counts as two classes.
    features
        Name of the layer whose input is used as features. By default it is found if the model ends
        in a linear layer: then it is the input of the linear layer that runs last.
    precision
        "full", or "mixed" for bfloat16 autocasting, which is faster on GPUs.

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
        check_choice("Classifier", "precision", precision, PRECISIONS)
        if isinstance(model, tuple):
            model, features = _join(model, features), "head"
        _check_model(model)
        self.model = model
        self.features = features
        self.precision = precision
        self.norm: NormPolicy = "frozen"
        self.stream: StreamStatistics | None = None
        # The name, not the layer: a module attribute would enter the state dict.
        self._head_name: str | None = None
        self._channels_last = True  # until the model fails on images in this layout
        self._candidates()

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def head_name(self) -> str:
        """Name of the last layer. Before the first run, the last registered one."""
        if self._head_name is None:
            self._head_name = list(self._candidates())[-1]
        return self._head_name

    @property
    def head(self) -> nn.Module:
        """The last layer. Its input is the features."""
        return self.model.get_submodule(self.head_name)

    def use_norm(
        self,
        policy: NormPolicy,
        *,
        source_share: SourceShare = SOURCE_SHARE,
        window: int = WINDOW,
        groups: StyleGroups | None = None,
    ) -> None:
        """Choose the statistics that batch-norm layers use.

        "frozen" uses the stored ones, "batch" those of the batch. "running" uses stored ones that
        follow the batches in training. "blended" mixes the stored ones with those of recent
        batches.

        Parameters
        ----------
        policy
            One of the four policies.
        source_share, window
            For "blended": the weight of the stored statistics ("auto" finds it), and the number of
            recent samples.
        groups
            For "blended": finds styles with their own statistics. None for one style.
        """
        check_choice("Classifier", "norm", policy, NORM_POLICIES)
        stop_blending(self.model)
        self.stream = None
        switch = use_batch_statistics if policy == "batch" else use_stored_statistics
        switch(self.model)
        if policy == "blended":
            self.stream = StreamStatistics(
                self.model, source_share=source_share, window=window, groups=groups
            )
        self.norm = policy

    @property
    def is_trying_shares(self) -> bool:
        """True if the current pass tries another share of the source's statistics."""
        return self.stream is not None and self.stream.share.is_trying

    def keep_statistics(self, samples: Sequence[SampleId] = ()) -> None:
        """Remember the statistics of the last batch; only "blended" has a memory.

        Style vectors are stored by sample name, if names are given.
        """
        if self.stream is not None:
            self.stream.keep(samples)

    @contextmanager
    def held_statistics(self) -> Iterator[None]:
        """Normalise every pass inside the block with the blended statistics of the first one."""
        with nullcontext() if self.stream is None else self.stream.held():
            yield

    def forward(self, inputs: Tensor) -> Prediction:
        if not isinstance(inputs, Tensor) or inputs.ndim == 0:
            raise ModelError(
                f"Classifier: inputs must be a tensor whose first dimension is the batch, got "
                f"{inputs if isinstance(inputs, Tensor) else type(inputs).__name__}."
            )
        return self.run(inputs, rows=len(inputs))

    def run(self, inputs: Tensor, *, rows: int) -> Prediction:
        """Run a pass whose number of output rows differs from that of its inputs, for hooks.

        Parameters
        ----------
        inputs
            The input of the model.
        rows
            The number of output rows.
        """
        output, name, features = self._run_and_watch(inputs)
        logits = as_logits(output, rows)
        self._remember_head(name)
        return Prediction(logits.float(), as_rows(self.head, features, rows).float())

    def _run_and_watch(self, inputs: Tensor) -> tuple[object, str, Tensor]:
        """Run the model; return which candidate ran last, and on what."""
        candidates = self._candidates()
        names = {layer: name for name, layer in candidates.items()}
        seen: list[tuple[str, Tensor]] = []

        def callbacks(
            layer: nn.Module, positional: tuple[object, ...], named: dict[str, object]
        ) -> None:
            given = (*positional, *named.values())
            tensors = [value for value in given if isinstance(value, Tensor)]
            if tensors:
                seen[:] = [(names[layer], tensors[0])]

        # All candidates are watched every time. With fewer, attention layers might switch to a
        # fused kernel with other rounding, and two equal calls would differ slightly.
        hooks = [
            layer.register_forward_pre_hook(callbacks, with_kwargs=True)
            for layer in candidates.values()
        ]
        try:
            output = self._run(inputs)
        finally:
            for hook in hooks:
                hook.remove()
        if not seen:
            raise ModelError(
                "Classifier: the layer that should give the features did not run. "
                'Name another one (features="…") or pass an (encoder, head) pair.'
            )
        return output, *seen[0]

    def _run(self, inputs: Tensor) -> object:
        mixed = self.precision == "mixed"
        try:
            with (
                torch.autocast(self.device.type, torch.bfloat16, enabled=mixed),
                safe_group_norm(self.model),
            ):
                return self._run_in_layout(inputs)
        except torch.OutOfMemoryError:
            raise
        except _INPUT_FAULTS as error:
            raise ModelError(
                f"Classifier: {type(self.model).__name__} failed on inputs of shape "
                f"{tuple(inputs.shape)}, type {inputs.dtype}, on {inputs.device}: {error} "
                f"Check that the stream delivers what the model was trained on (size, channels, "
                f"type), on the model's device ({self.device})."
            ) from error

    def _run_in_layout(self, inputs: Tensor) -> object:
        """Run the model on images with channels last, if it can."""
        if not self._channels_last or torch.compiler.is_compiling():
            return self.model(inputs)
        faster = channels_last(inputs)
        if faster is inputs:
            return self.model(inputs)
        try:
            return self.model(faster)
        except RuntimeError:  # its code may call `view`, which needs the usual layout
            self._channels_last = False
            return self.model(inputs)

    def _candidates(self) -> Mapping[str, nn.Module]:
        """Return layers whose input may be the features, by name."""
        layers = {name: layer for name, layer in self.model.named_modules() if name}
        if self.features is not None:
            if self.features not in layers:
                raise _no_such_layer(self.features, list(layers))
            return {self.features: layers[self.features]}
        if isinstance(self.model, nn.Linear):
            return {"": self.model}
        linear = {name: layer for name, layer in layers.items() if isinstance(layer, nn.Linear)}
        if not linear:
            raise ModelError(
                f"Classifier: {type(self.model).__name__} has no linear layer, so its features "
                f'are not clear. Name the layer whose input they are (features="…") or pass an '
                f"(encoder, head) pair."
            )
        return linear

    def _remember_head(self, name: str) -> None:
        if self._head_name not in (None, name):
            raise ModelError(
                f"Classifier: the linear layer that ran last is {name!r}, but before it was "
                f'{self._head_name!r}, so the head is not clear. Name it (features="{name}") or '
                "pass an (encoder, head) pair."
            )
        self._head_name = name


def _join(pair: tuple[nn.Module, ...], features: str | None) -> EncoderHead:
    if len(pair) != 2 or not all(isinstance(part, nn.Module) for part in pair):
        given = ", ".join(type(part).__name__ for part in pair)
        raise ModelError(
            f"Classifier: a model in parts must be two modules, (encoder, head), got ({given})."
        )
    if features is not None:
        raise ModelError(
            f"Classifier: in an (encoder, head) pair the features are what the encoder returns; "
            f"leave out features={features!r}."
        )
    return EncoderHead(*pair)


def _check_model(model: object) -> None:
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"Classifier: the model must be a torch.nn.Module or an (encoder, head) pair, "
            f"got {type(model).__name__}."
        )
    if next(model.parameters(), None) is None:
        raise ModelError(
            f"Classifier: {type(model).__name__} has no parameters, so there is nothing to adapt. "
            f"Pass the trained model itself."
        )


def _no_such_layer(name: str, known: list[str]) -> ModelError:
    return ModelError(
        f"Classifier: the model has no layer named {name!r}.{nearest_hint(name, known)} "
        f"Its last layers are {', '.join(known[-5:])}."
    )
