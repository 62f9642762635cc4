"""SimATTA: labelled anchors against the shift, source-like anchors against forgetting.

Gui, Li and Ji, "Active Test-Time Adaptation: Theoretical Analyses and An Algorithm", ICLR 2024,
section 4, Algorithms 1 and 2. https://openreview.net/forum?id=YHUGlwTzFB

Deliberate differences from the public code, which `attakit.methods.reference` imitates: the budget
is a hard cap; no sample is asked twice; a cluster's question is its own member nearest the
centroid; an anchor gains weight from new samples only; a sample people are asked about is not also
pseudo-labelled; source-like anchors are bounded in number; training has a cap on updates; entropy
bounds fit themselves to the model.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from torch import Tensor, nn

from attakit.errors import SettingError, check_count
from attakit.methods.asking import AskingMethod
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import NormPolicy
from attakit.nn.trainable import trainable_parameters
from attakit.protocols import Selector, Trainer
from attakit.queries import Allowance, Answer, SampleId
from attakit.records import Batch, LabelledRows, Step, Training
from attakit.select.bounds import EntropyBounds
from attakit.select.incremental import IncrementalClustering
from attakit.select.label_rate import LabelRate
from attakit.store.anchors import Anchors
from attakit.store.stored_rows import StoredRows
from attakit.store.waiting import waiting_rows
from attakit.train.balanced import BalancedTrainer

Bound = float | Literal["auto"]
Capacity = int | Literal["unlimited"]


class SimATTA(AskingMethod):
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
        Chooses among uncertain samples; incremental clustering by default. With its setting
        `cluster_growth` the clusters set the pace, as the paper says.
    rate
        How many labels to ask for; the budget spread over the stream by default.
    trainer
        Trains on the two anchor sets; balanced cross-entropy by default.
    trainable
        Which parameters train: "all", "norm", "head" or "last:N".
    norm
        Statistics of batch-norm layers: "frozen" (the source's), "batch", "running" or "blended"
        (the source's mixed with those of recent batches).
    low_entropy_capacity
        Source-like anchors kept, as a uniform draw from all seen; or "unlimited".
    include_bound
        Count a sample exactly at e_h as uncertain. With e_h = 0 every sample may then be asked.
    seed
        Of all random choices.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = SimATTA(tiny_classifier(), high_entropy_bound=0.0)
    >>> step = method.step(tiny_batch(), Allowance(2))
    >>> len(step.queries)
    2
    """

    stateful: ClassVar[tuple[str, ...]] = (
        "model",
        "low_entropy_anchors",
        "high_entropy_anchors",
        "waiting",
        "rate",
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
        rate: LabelRate | None = None,
        trainer: Trainer | None = None,
        trainable: str = "all",
        norm: NormPolicy = "frozen",
        low_entropy_capacity: Capacity = 200,
        include_bound: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(model, selector=selector or IncrementalClustering(seed=seed), rate=rate)
        self.source_model = copy.deepcopy(self.model)
        self.bounds = EntropyBounds(low_entropy_bound, high_entropy_bound)
        self.trainer = trainer or BalancedTrainer(seed=seed)
        self.include_bound = include_bound
        capacity = _capacity(low_entropy_capacity)
        self.low_entropy_anchors = Anchors(capacity=capacity, seed=seed)
        self.high_entropy_anchors = Anchors()
        self.model.use_norm(norm)
        trainable_parameters(self.model, trainable)

    @property
    def source_like_anchors(self) -> Anchors:
        return self.low_entropy_anchors

    @property
    def labelled_anchors(self) -> Anchors:
        return self.high_entropy_anchors

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        prediction = self.answer(self.model, batch.inputs)
        self.model.keep_statistics()
        entropy = softmax_entropy(prediction.logits)
        self.bounds.observe(entropy.tolist(), prediction.logits.shape[1])
        uncertain = waiting_rows(batch, prediction).take(self._unsure(entropy))
        allowance = self.due(batch, allowance)
        # IC(D_h(t-1), U_h(t), NC(t)) within the budget (Algorithm 1, line 5).
        queries, choice = self.ask(uncertain, self._covered(uncertain, allowance), allowance)
        self._take_confident(batch, asked={query.sample for query in queries})
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

    def _unsure(self, entropy: Tensor) -> list[int]:
        """U_h(t): what the adapting model is unsure about (Algorithm 1, line 4)."""
        unsure = entropy >= self.bounds.high if self.include_bound else entropy > self.bounds.high
        return unsure.nonzero().flatten().tolist()

    def _covered(self, uncertain: LabelledRows, allowance: Allowance) -> tuple[StoredRows, ...]:
        """D_h(t-1) and open questions, with features of the present model if they are needed."""
        if allowance.limit == 0 or len(uncertain) == 0:
            return ()
        self.high_entropy_anchors.refresh(self.predict)
        self.waiting.refresh(self.predict)
        return self.high_entropy_anchors, self.waiting

    def _take_confident(self, batch: Batch, asked: set[SampleId]) -> None:
        """D_l(t): what the source model is sure about, with its labels (Algorithm 1, line 3)."""
        if self.bounds.low == 0 and not self.bounds.low_is_fitted:
            return
        source = self.answer(self.source_model, batch.inputs)
        entropy = softmax_entropy(source.logits)
        trusted = self._trusted(batch, entropy, asked)
        self.bounds.observe_source(entropy.tolist())
        below = [place for place in trusted if entropy[place] < self.bounds.low]
        rows = waiting_rows(batch, source).take(below)
        self.low_entropy_anchors.add(replace(rows, labels=rows.logits.argmax(dim=1)))

    def _trusted(self, batch: Batch, entropy: Tensor, asked: set[SampleId]) -> list[int]:
        """Who may get a pseudo-label, surest first: samples that people are not asked about."""
        order = entropy.argsort(stable=True).tolist()
        return [place for place in order if batch.samples[place] not in asked]


def _capacity(value: Capacity) -> int | None:
    if value == "unlimited":
        return None
    if isinstance(value, str):
        raise SettingError(
            f"SimATTA: low_entropy_capacity must be a number or 'unlimited', got {value!r}."
        )
    check_count("SimATTA", "low_entropy_capacity", value)
    return value
