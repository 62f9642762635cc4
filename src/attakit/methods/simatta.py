"""SimATTA: labelled anchors against the shift, source-like anchors against forgetting.

Gui, Li and Ji, "Active Test-Time Adaptation: Theoretical Analyses and An Algorithm", ICLR 2024,
section 4, Algorithms 1 and 2. https://openreview.net/forum?id=YHUGlwTzFB

Deliberate differences from the public code, each with a setting that brings the public behaviour
back (`experiments/reference/simatta.toml` switches them all on): the budget is a hard cap; no
sample is asked twice; a cluster's question is its own member nearest the centroid; an anchor
gains weight from new samples only; a sample people are asked about is not also pseudo-labelled;
source-like anchors are bounded in number; training has a cap on updates; entropy bounds fit
themselves to the model.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

from torch import Tensor, nn

from attakit.errors import SettingError, check_count
from attakit.methods.base import BaseMethod
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import NormPolicy
from attakit.nn.trainable import trainable_parameters
from attakit.protocols import Selector, Trainer
from attakit.queries import Answer, SampleId
from attakit.records import Batch, Choice, LabelledRows, Selection, Step, Training
from attakit.select.bounds import EntropyBounds
from attakit.select.incremental import IncrementalClustering
from attakit.store.anchors import Anchors
from attakit.store.stored_rows import covered_rows
from attakit.store.waiting import Waiting, waiting_rows
from attakit.train.balanced import BalancedTrainer

Bound = float | Literal["auto"]
Capacity = int | Literal["unlimited"]


class SimATTA(BaseMethod):
    """Asks about uncertain samples that are unlike those asked before; trains on both anchor sets.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    low_entropy_bound
        e_l: below it the source model's answer is trusted as a pseudo-label. "auto" fits it to the
        model (see `attakit.select.bounds`); 0 leaves source-like samples out (the ablation LE=0).
    high_entropy_bound
        e_h: above it the adapting model is unsure enough to ask. "auto" fits it to the model.
    selector
        Chooses among uncertain samples; incremental clustering by default.
    trainer
        Trains on the two anchor sets; balanced cross-entropy by default.
    trainable
        Which parameters train: "all", "norm", "head" or "last:N".
    norm
        Statistics of batch-norm layers: "frozen" (the source's), "batch", "running" or "blended"
        (the source's mixed with those of recent batches).
    low_entropy_capacity
        Source-like anchors kept, as a uniform draw from all seen; or "unlimited".
    low_entropy_limit
        Source-like samples taken from one batch, surest first; or "unlimited".
    include_bound
        Count a sample exactly at e_h as uncertain.
    both_sets
        Let a sample that is asked about also enter the source-like set with its pseudo-label.
    seed
        Of all random choices.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = SimATTA(tiny_classifier(), high_entropy_bound=0.0)
    >>> step = method.step(tiny_batch(), allowance=2)
    >>> len(step.queries)
    2
    """

    stateful = (
        "model",
        "low_entropy_anchors",
        "high_entropy_anchors",
        "waiting",
        "bounds",
        "trainer",
        "step_count",
    )

    def __init__(
        self,
        model: nn.Module,
        *,
        low_entropy_bound: Bound = "auto",
        high_entropy_bound: Bound = "auto",
        selector: Selector | None = None,
        trainer: Trainer | None = None,
        trainable: str = "all",
        norm: NormPolicy = "frozen",
        low_entropy_capacity: Capacity = 200,
        low_entropy_limit: Capacity = "unlimited",
        include_bound: bool = False,
        both_sets: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(model)
        self.source_model = copy.deepcopy(self.model)
        self.bounds = EntropyBounds(low_entropy_bound, high_entropy_bound)
        self.selector = selector or IncrementalClustering(seed=seed)
        self.trainer = trainer or BalancedTrainer(seed=seed)
        self.low_entropy_limit = _limit("low_entropy_limit", low_entropy_limit)
        self.include_bound = include_bound
        self.both_sets = both_sets
        capacity = _limit("low_entropy_capacity", low_entropy_capacity)
        self.low_entropy_anchors = Anchors(capacity=capacity, seed=seed)
        self.high_entropy_anchors = Anchors()
        self.waiting = Waiting()
        self.step_count = 0
        self.model.use_norm(norm)
        trainable_parameters(self.model, trainable)

    def step(self, batch: Batch, allowance: int) -> Step:
        inputs = self.place(batch.inputs)
        self.step_count = batch.step
        prediction = self.answer(self.model, inputs)
        if len(batch):
            self.model.keep_statistics()
        entropy = softmax_entropy(prediction.logits)
        self.bounds.observe(entropy.tolist(), prediction.logits.shape[1])
        uncertain = waiting_rows(batch, inputs, prediction).take(self._unsure(entropy))
        choice = self._choose(uncertain, allowance)
        queries = self.waiting.hold_chosen(uncertain, choice.selection, self.step_count)
        self._take_confident(batch, inputs, asked={query.sample for query in queries})
        numbers = {
            "uncertain": float(len(uncertain)),
            "low_entropy_bound": self.bounds.low,
            "high_entropy_bound": self.bounds.high,
        }
        return Step(prediction, queries, numbers, choice)

    def learn(self, answers: Sequence[Answer]) -> Training:
        labelled = self.waiting.resolve(answers)
        if labelled is not None:
            self.high_entropy_anchors.add(labelled)
        return self.trainer.fit(
            self.model, self.low_entropy_anchors, self.high_entropy_anchors, self.step_count
        )

    def forget(self, samples: Collection[SampleId]) -> None:
        for store in (self.low_entropy_anchors, self.high_entropy_anchors, self.waiting):
            store.forget(samples)

    def _unsure(self, entropy: Tensor) -> list[int]:
        """U_h(t): what the adapting model is unsure about (Algorithm 1, line 4)."""
        unsure = entropy >= self.bounds.high if self.include_bound else entropy > self.bounds.high
        return unsure.nonzero().flatten().tolist()

    def _choose(self, uncertain: LabelledRows, allowance: int) -> Choice:
        """IC(D_h(t-1), U_h(t), NC(t)) within the budget (Algorithm 1, line 5)."""
        candidates = uncertain.unlabelled()
        if allowance == 0 or len(candidates) == 0:
            return Choice(candidates, covered_rows((), like=candidates), Selection())
        self.high_entropy_anchors.refresh(self.predict)
        self.waiting.refresh(self.predict)
        known = covered_rows((self.high_entropy_anchors, self.waiting), like=candidates)
        selection = self.selector.select(candidates, known, allowance, self.step_count)
        self.high_entropy_anchors.reweight(selection.weights)
        self.waiting.reweight(selection.weights)
        return Choice(candidates, known, selection)

    def _take_confident(self, batch: Batch, inputs: Tensor, asked: set[SampleId]) -> None:
        """D_l(t): what the source model is sure about, with its labels (Algorithm 1, line 3)."""
        if self.bounds.low == 0 and not self.bounds.low_is_fitted:
            return
        source = self.answer(self.source_model, inputs)
        entropy = softmax_entropy(source.logits)
        surest_first = [
            place
            for place in entropy.argsort(stable=True).tolist()
            if self.both_sets or batch.samples[place] not in asked
        ][: self.low_entropy_limit]
        self.bounds.observe_source(entropy.tolist())
        below = [place for place in surest_first if entropy[place] < self.bounds.low]
        rows = waiting_rows(batch, inputs, source).take(below)
        self.low_entropy_anchors.add(replace(rows, labels=rows.logits.argmax(dim=1)))


def _limit(name: str, value: Capacity) -> int | None:
    if value == "unlimited":
        return None
    if isinstance(value, str):
        raise SettingError(f"SimATTA: {name} must be a number or 'unlimited', got {value!r}.")
    check_count("SimATTA", name, value)
    return value
