"""Supervised training of a source model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attakit.errors import (
    ModelError,
    SettingError,
    StateError,
    check_choice,
    check_count,
    check_range,
)
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place, prepare
from attakit.nn.norm import moving_statistics
from attakit.nn.seeding import seeded
from attakit.nn.trainable import trainable_parameters
from attakit.nn.weights import weights_hash
from attakit.store.tensor_file import load_state, save_state
from attakit.train.source_samples import (
    LabelledSamples,
    draw_epochs,
    read_labels,
    split_positions,
)
from attakit.train.validation import Validation, Validator

UpdateCallback = Callable[[int, dict[str, float]], None]

NORM_CHOICES = ("frozen", "running")
KEEP_CHOICES = ("best", "last")


@dataclass(frozen=True, slots=True)
class SourceTraining:
    """The result of training a source model."""

    losses: tuple[float, ...]  # one per update
    validations: tuple[Validation, ...]
    update: int  # the update whose weights were kept
    accuracy: float | None  # on held-out samples at that update
    train_positions: tuple[int, ...]
    held_out_positions: tuple[int, ...]  # empty if separate validation samples were given


def train_source(
    model: nn.Module,
    samples: LabelledSamples,
    *,
    validation: LabelledSamples | None = None,
    updates: int = 3000,
    lr: float = 1e-4,
    batch_size: int = 16,
    trainable: str | None = None,
    norm: Literal["frozen", "running"] = "frozen",
    held_out: float = 0.2,
    validate_every: int = 100,
    keep: Literal["best", "last"] = "best",
    seed: int = 0,
    progress: UpdateCallback | None = None,
    checkpoint: Path | None = None,
) -> SourceTraining:
    """Train a model on labelled samples, in place, and leave it in evaluation mode.

    Parameters
    ----------
    model
        A module that returns logits, or a Classifier.
    samples
        The samples to train on.
    validation
        The samples to validate on. Without them, a share of the training samples is held out.
    updates
        Number of optimiser steps.
    lr
        Learning rate of Adam.
    batch_size
        Samples per update.
    trainable
        The parameters to train: "all", "norm", "head" or "last:N". None means those that require a
        gradient.
    norm
        Batch-norm statistics: "frozen" leaves them (pretrained models), "running" lets them
        follow the data (models trained from scratch).
    held_out
        Share of the samples to validate on, drawn from (seed, "source split").
    validate_every
        Updates between validations; the last update is always validated.
    keep
        "best" ends with the weights of the best validation (accuracy, then loss), "last" with the
        last ones.
    seed
        Seed of split, order and dropout.
    progress
        Called after every update with its number and "loss", after validations with "accuracy".
    checkpoint
        File to save to at every validation. If it exists, training continues from it and ends with
        the same weights as without a stop.

    Examples
    --------
    >>> class Halves:
    ...     labels = [0, 1] * 10
    ...     def __len__(self):
    ...         return 20
    ...     def load(self, positions):
    ...         return torch.tensor([[float(self.labels[position])] for position in positions])
    >>> with seeded(0, "weights"):
    ...     model = nn.Sequential(nn.Linear(1, 2))
    >>> train_source(model, Halves(), updates=100, lr=0.1).accuracy
    1.0
    """
    counts = {"updates": updates, "batch_size": batch_size, "validate_every": validate_every}
    _check_settings(counts, held_out=held_out, norm=norm, keep=keep)
    labels = read_labels(samples)
    share = held_out if validation is None else 0.0
    train_positions, held_out_positions = split_positions(len(samples), share, seed)
    if keep == "best":
        _check_can_validate(validation, held_out_positions)
    classifier = model if isinstance(model, Classifier) else Classifier(model)
    prepare(classifier, classifier.device)
    if trainable is not None:
        trainable_parameters(classifier, trainable)
    validator = Validator(classifier, samples, held_out_positions)
    if validation is not None:
        validator = Validator(classifier, validation, range(len(validation)))
    learn = _Learner(classifier, _build_optimizer(classifier, lr), norm)
    described = (
        f"{len(samples)} samples, held_out={held_out}, batch_size={batch_size}, lr={lr}, "
        f"trainable={trainable}, norm={norm}, seed={seed}, model {weights_hash(classifier)}"
    )
    saved = _Checkpoint(checkpoint, described, learn, validator)
    losses = saved.load()
    draws = islice(draw_epochs(train_positions, batch_size, seed), len(losses), updates)
    for update, positions in enumerate(draws, start=len(losses) + 1):
        with seeded(seed, "source training", update, device=classifier.device):
            losses.append(learn(update, samples.load(positions), labels[positions]))
        numbers = {"loss": losses[-1]}
        if update % validate_every == 0 or update == updates:
            numbers |= validator.validate(update)
            saved.save(losses)
        if progress is not None:
            progress(update, numbers)
    kept = validator.restore_best() if keep == "best" else validator.last
    classifier.eval()
    return SourceTraining(
        losses=tuple(losses),
        validations=tuple(validator.validations),
        update=kept.update if kept else updates,
        accuracy=kept.accuracy if kept else None,
        train_positions=tuple(train_positions),
        held_out_positions=tuple(held_out_positions),
    )


class _Learner:
    """Takes one optimiser step per call."""

    def __init__(self, classifier: Classifier, optimizer: torch.optim.Optimizer, norm: str) -> None:
        self.classifier = classifier
        self.optimizer = optimizer
        self.norm = norm

    def __call__(self, update: int, inputs: Tensor, labels: Tensor) -> float:
        device = self.classifier.device
        self._set_mode()
        with moving_statistics(self.classifier) if self.norm == "running" else nullcontext():
            logits = self.classifier(place(inputs, device)).logits
        _check_classes(labels, logits.shape[1])
        loss = F.cross_entropy(logits, labels.to(device))
        value = loss.item()
        self._check_finite(update, value)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return value

    def _set_mode(self) -> None:
        """Set training mode for all layers except batch norm, which has its own setting."""
        self.classifier.train()
        for layer in self.classifier.modules():
            if isinstance(layer, _BatchNorm):
                layer.eval()

    def _check_finite(self, update: int, loss: float) -> None:
        if math.isfinite(loss):
            return
        lr = self.optimizer.param_groups[0]["lr"]
        raise ModelError(
            f"train_source: the loss became {loss} at update {update} with lr={lr}. Lower lr, and "
            "check that the inputs are finite and scaled for the model."
        )


class _Checkpoint:
    """Saves and resumes training; without a file it does nothing.

    The order of samples follows from the seed, so the losses so far determine the position.
    """

    def __init__(
        self, path: Path | None, described: str, learn: _Learner, validator: Validator
    ) -> None:
        self.path = path
        self.described = described
        self.learn = learn
        self.validator = validator

    def save(self, losses: list[float]) -> None:
        if self.path is None:
            return
        save_state(
            self.path,
            {
                "training": self.described,
                "losses": losses,
                "weights": self.learn.classifier.state_dict(),
                "optimizer": self.learn.optimizer.state_dict(),
                "validator": self.validator.state_dict(),
            },
        )

    def load(self) -> list[float]:
        """Restore the saved state, and return the losses of its updates."""
        if self.path is None or not self.path.exists():
            return []
        state: Mapping[str, Any] = load_state(self.path)
        if state["training"] != self.described:
            raise StateError(
                f"train_source: {self.path} belongs to another training ({state['training']}), but "
                f"this one has {self.described}. Delete the file to start again, or restore the "
                "settings to continue."
            )
        self.learn.classifier.load_state_dict(state["weights"])
        self.learn.optimizer.load_state_dict(dict(state["optimizer"]))
        self.validator.load_state_dict(state["validator"])
        return list(state["losses"])


def _check_settings(counts: dict[str, int], *, held_out: float, norm: str, keep: str) -> None:
    for name, value in counts.items():
        check_count("train_source", name, value)
    check_range("train_source", "held_out", held_out, at_least=0, at_most=1)
    check_choice("train_source", "norm", norm, NORM_CHOICES)
    check_choice("train_source", "keep", keep, KEEP_CHOICES)


def _check_can_validate(validation: LabelledSamples | None, held_out: list[int]) -> None:
    if validation is None and not held_out:
        raise SettingError(
            'train_source: keep="best" needs samples to validate on, got held_out=0. Hold some '
            'out, pass validation samples, or set keep="last".'
        )


def _build_optimizer(classifier: Classifier, lr: float) -> torch.optim.Optimizer:
    check_range("train_source", "lr", lr, above=0)
    parameters = [one for one in classifier.parameters() if one.requires_grad]
    if not parameters:
        raise ModelError(
            "train_source: no parameter requires a gradient, so nothing would train. Call "
            "model.requires_grad_(True), or do so for the layers that should train."
        )
    return torch.optim.Adam(parameters, lr=lr)


def _check_classes(labels: Tensor, classes: int) -> None:
    if int(labels.max()) >= classes:
        raise ModelError(
            f"train_source: a sample has the label {int(labels.max())}, but the model knows "
            f"{classes} classes (0 to {classes - 1}). Build it with more classes."
        )
