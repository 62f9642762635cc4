"""The residual head of a method: fitted again whenever its anchors change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from torch import Tensor

from attakit.errors import SettingError, check_range
from attakit.nn.frozen_head import head_logits
from attakit.nn.one_thread import one_thread
from attakit.records import LabelledRows
from attakit.targets import Targets
from attakit.train.hedge import USUAL_HEDGE, find_hedge
from attakit.train.residual_head import choose_penalty, fit_coefficients, weights_of

Penalty = float | Literal["auto"]
Hedge = float | Literal["auto"]

USUAL_PENALTY = 1 / 144
_OTHERS = tuple(USUAL_PENALTY * factor for factor in (16.0, 4.0, 0.25))
_ENOUGH = 30  # anchors before cross-validation is more reliable than the default
_ENOUGH_TO_HEDGE = 10
_TOLERANCE = 1e-2  # tolerance of the slope: a smaller one changes no answer
_GROWTH = 1.5  # cross-validate again when there are this many times the anchors

_SAVED = ("weights", "coefficients", "penalty", "chosen_at", "hedge", "hedged_at")


class ResidualHead:
    """Stores the weights of a head, and fits them to anchors in milliseconds.

    Parameters
    ----------
    penalty
        How strongly the head is held to the network's answer. "auto" is 1/144, unless
        cross-validation prefers another one when there are 30 anchors.
    hedge
        Share of the network's own answer in the prediction, 0 to 1. "auto" is 0.3, and follows
        cross-validation once there are 10 anchors.

    Examples
    --------
    >>> import torch
    >>> rows = LabelledRows(("a", "b"), torch.zeros(2, 0), torch.tensor([0, 1]), torch.eye(2),
    ...                     torch.zeros(2, 2), torch.ones(2))
    >>> head = ResidualHead()
    >>> head.fit(rows)
    >>> head.logits(rows.features, rows.logits).argmax(dim=1)
    tensor([0, 1])
    """

    def __init__(self, *, penalty: Penalty = "auto", hedge: Hedge = "auto") -> None:
        self.finds_penalty = _is_automatic("penalty", penalty)
        self.finds_hedge = _is_automatic("hedge", hedge)
        if penalty != "auto":
            check_range("ResidualHead", "penalty", penalty, above=0)
        if hedge != "auto":
            check_range("ResidualHead", "hedge", hedge, at_least=0, at_most=1)
        self.penalty = USUAL_PENALTY if penalty == "auto" else float(penalty)
        self.chosen_at = 0  # number of anchors when the penalty was last chosen
        self.hedge = USUAL_HEDGE if hedge == "auto" else float(hedge)
        self.hedged_at = 0  # anchors when the share of the network was found last
        self.weights: Tensor | None = None
        self.coefficients: Tensor | None = None  # a row per anchor, as a start for the next fit

    @property
    def dimension(self) -> int:
        """Weights per class, including the bias: the VC dimension of the head. 0 without one."""
        return 0 if self.weights is None else len(self.weights)

    @one_thread()
    def fit(self, rows: LabelledRows) -> None:
        """Fit the head to anchors, starting from its current weights."""
        if len(rows) == 0:
            self.weights = self.coefficients = None
            return
        targets = weighted_targets(rows)
        self._cross_validate(rows, targets)
        self.coefficients = fit_coefficients(
            rows.features,
            rows.logits,
            targets,
            penalty=self.penalty,
            start=self.coefficients,
            tolerance=_TOLERANCE,
        )
        self.weights = weights_of(rows.features, self.coefficients).float()

    def _cross_validate(self, rows: LabelledRows, targets: Targets) -> None:
        """Choose penalty and hedge again, if there are many more anchors than last time."""
        if self.finds_penalty and len(rows) >= max(_ENOUGH, _GROWTH * self.chosen_at):
            self.penalty = choose_penalty(
                rows.features, rows.logits, targets, usual=USUAL_PENALTY, others=_OTHERS
            )
            self.chosen_at = len(rows)
        if self.finds_hedge and len(rows) >= max(_ENOUGH_TO_HEDGE, _GROWTH * self.hedged_at):
            self.hedge = find_hedge(rows.features, rows.logits, targets, penalty=self.penalty)
            self.hedged_at = len(rows)

    def refit(self, rows: LabelledRows) -> None:
        """Fit to anchors from scratch, because some were forgotten."""
        self.weights = self.coefficients = None
        if self.finds_penalty:
            self.penalty, self.chosen_at = USUAL_PENALTY, 0
        if self.finds_hedge:
            self.hedge, self.hedged_at = USUAL_HEDGE, 0
        self.fit(rows)

    def logits(self, features: Tensor, offsets: Tensor) -> Tensor:
        """Return the head's logits; without anchors they are the network's."""
        return offsets if self.weights is None else head_logits(features, offsets, self.weights)

    def chances(self, features: Tensor, offsets: Tensor) -> Tensor:
        """Return probabilities: the head's, with a share of the network's own."""
        own = offsets.softmax(dim=1)
        if self.weights is None:
            return own
        return self.logits(features, offsets).softmax(dim=1).lerp(own, self.hedge)

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SAVED}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in _SAVED:
            # States from before the hedge was found have none: they keep the usual one.
            setattr(self, name, state.get(name, getattr(self, name)))


def _is_automatic(name: str, value: float | str) -> bool:
    if isinstance(value, str) and value != "auto":
        raise SettingError(f"ResidualHead: {name} must be a number or 'auto', got {value!r}.")
    return value == "auto"


def weighted_targets(rows: LabelledRows) -> Targets:
    """Return what people said about rows. A row counts for as many samples as it represents."""
    if rows.targets is None:
        return Targets.of_labels(rows.labels, rows.logits.shape[1], rows.weights)
    said = rows.targets
    return Targets(said.shares.double(), said.weights.double() * rows.weights, said.open)
