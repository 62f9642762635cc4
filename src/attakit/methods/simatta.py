"""SimATTA: labelled anchors against the shift, source-like anchors against forgetting.

Gui, Li and Ji, "Active Test-Time Adaptation: Theoretical Analyses and An Algorithm", ICLR 2024,
section 4, Algorithms 1 and 2. https://openreview.net/forum?id=YHUGlwTzFB

Deliberate differences from the public code, which `attakit.methods.reference` imitates: the budget
is a hard cap. No sample is asked about twice. A cluster asks about its own member nearest the
centroid; of equally near ones the earlier sample. An anchor gains weight from new samples only.

The defaults differ from the paper too. `SimATTA.as_in_paper` does not have these differences:
batch-norm statistics are blended with those of the stream, by style. Training follows the number of
new labels and keeps the source model's soft answers. Large models train their last stages only.
Entropy bounds adapt to the model. A sample that people are asked about gets no pseudo-label. The
number of source-like anchors is limited, so with more labels than that λ₀ falls below the paper's
0.5 (runs warn). Labelled ones weigh at most 0.2 while there are few source-like ones. One
difference stays: training ends on means of five losses, not on single ones (see `Plateau`). Dropout
is off and statistics are frozen in every pass: the paper removes dropout from its models.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from attakit.errors import SettingError, check_count
from attakit.methods.asking import AskingMethod
from attakit.nn.blended import first_convolution
from attakit.nn.classifier import Classifier
from attakit.nn.entropy import softmax_entropy
from attakit.nn.home import HomeAnswers
from attakit.nn.norm import NormPolicy
from attakit.nn.source_card import CARD_SAMPLES, read_or_make_card
from attakit.nn.split import Split, find_split
from attakit.nn.steady import steady_statistics
from attakit.nn.styles import StyleGroups
from attakit.nn.trainable import trainable_parameters
from attakit.protocols import NeedsSource, Selector, Trainer
from attakit.queries import Allowance, Answer, QuestionKind, SampleId
from attakit.records import Batch, LabelledRows, Prediction, Step, Training
from attakit.select.bounds import EntropyBounds
from attakit.select.incremental import IncrementalClustering
from attakit.select.label_rate import LabelRate
from attakit.store.anchors import Anchors
from attakit.store.stored_rows import StoredRows
from attakit.store.waiting import waiting_rows
from attakit.train.balanced import BalancedTrainer
from attakit.train.distilling import DistillingTrainer
from attakit.train.weighting import Weighting

Bound = float | Literal["auto"]
Capacity = int | Literal["unlimited"]

# The paper names no limit. But while there are fewer labels than a mini-batch has places, every
# mini-batch is the same, and its loss falls for thousands of updates.
_PAPER_UPDATES = 100


class SimATTA(AskingMethod, NeedsSource):
    """Asks about uncertain samples unlike earlier ones; trains on both anchor sets.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    low_entropy_bound
        e_l: below it the source model's answer is trusted as a pseudo-label. "auto" fits it to the
        model (see `attakit.select.bounds`); 0 disables source-like samples (the ablation LE=0).
    high_entropy_bound
        e_h: above it the adapting model is uncertain enough to ask. "auto" fits it to the model.
    selector
        Chooses among uncertain samples; by default incremental clustering. With its setting
        `cluster_growth` the clusters set the pace, as in the paper.
    rate
        The label rate; by default the budget is spread over the stream.
    question
        What to ask: "class", or "yes_no" to ask whether the predicted class is right. A "no" trains
        as an excluded class.
    trainer
        Trains on the two anchor sets; by default `DistillingTrainer`.
    trainable
        The parameters to train: "auto" (all of a small model, the last stages of a large one),
        "all", "norm", "head" or "last:N". Anchors keep the activations at the first layer that
        trains, so that the layers in front of it run once per sample.
    norm
        Statistics of batch-norm layers: "frozen" (the source's), "batch", "running" or "blended"
        (the source's mixed with those of recent batches, in a proportion that fits the first
        samples). If blended, the source model's are blended too, but without a memory of earlier
        batches. Otherwise it keeps its own.
    styles
        Maximum number of styles (domains) that the stream may mix at a time. With blended
        statistics each has its own in a model that trains from its first convolution on. 1 treats
        the stream as one style.
    source_card
        What source samples look like to the model: a file that `attakit pretrain` or `attakit card`
        wrote, "auto" to make it from `source_inputs`, or "stored" to guess it from the stored
        statistics of the first batch norm. Samples that look like the source's then get the source
        model's answer, at the cost of one more pass for them. None uses no card.
    source_inputs
        A few hundred training inputs of the model, for the card.
    low_entropy_capacity
        Number of source-like anchors to store, as a uniform draw from all seen; or "unlimited".
    include_bound
        Count a sample exactly at e_h as uncertain. With e_h = 0 any sample may then be asked about.
    trust_asked
        Also give a pseudo-label to samples that people are asked about, if the source model is sure
        of them, as in the paper. Such a sample is in both anchor sets.
    seed
        Seed of all random choices.

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
        "styles",
        "home",
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
        question: QuestionKind = "class",
        trainer: Trainer | None = None,
        trainable: str = "auto",
        norm: NormPolicy = "blended",
        styles: int = 4,
        source_card: str | Path | None = None,
        source_inputs: Tensor | None = None,
        low_entropy_capacity: Capacity = 200,
        include_bound: bool = False,
        trust_asked: bool = False,
        seed: int = 0,
    ) -> None:
        check_count("SimATTA", "styles", styles, at_least=1)
        selector = selector or IncrementalClustering(seed=seed)
        super().__init__(model, selector=selector, rate=rate, question=question)
        self.bounds = EntropyBounds(low_entropy_bound, high_entropy_bound)
        self.trainer = trainer or DistillingTrainer(seed=seed)
        self.include_bound = include_bound
        self.trust_asked = trust_asked
        capacity = _capacity(low_entropy_capacity)
        self.low_entropy_anchors = Anchors(capacity=capacity, seed=seed)
        self.high_entropy_anchors = Anchors()
        card = read_or_make_card(model, source_card, source_inputs)
        self.home = None if card is None else HomeAnswers(self.model, card, styles=styles)
        self.source_model = copy.deepcopy(self.model)
        if norm == "blended":
            self.source_model.use_norm(norm, source_share="auto")
        trainable_parameters(self.model, trainable)
        self.styles = StyleGroups(most=styles)
        groups = self.styles if _trains_first(self.model) else None
        self.model.use_norm(norm, source_share="auto", groups=groups)
        self._split: Split | None = None  # found with the first inputs

    @classmethod
    def as_in_paper(cls, model: nn.Module, *, seed: int = 0, **settings: Any) -> Self:
        """Return SimATTA with the paper's settings on PACS; `settings` replace some of them.

        Examples
        --------
        >>> from attakit.testing import tiny_classifier
        >>> SimATTA.as_in_paper(tiny_classifier()).model.norm
        'frozen'
        """
        paper: dict[str, Any] = {
            "low_entropy_bound": 1e-4,
            "high_entropy_bound": 1e-2,
            "selector": IncrementalClustering(cluster_growth=1.0, inits=10, seed=seed),
            "trainer": BalancedTrainer(
                max_updates=_PAPER_UPDATES, weighting=Weighting(cold_start_size=0), seed=seed
            ),
            "trainable": "all",
            "norm": "frozen",
            "low_entropy_capacity": "unlimited",
            "trust_asked": True,
        }
        return cls(model, seed=seed, **(paper | settings))

    @staticmethod
    def service_settings() -> Mapping[str, Any]:
        """Return settings without blending: a frozen version must answer any domain."""
        return {"norm": "frozen"}

    @staticmethod
    def source_input_count(settings: Mapping[str, Any]) -> int:
        return CARD_SAMPLES if settings.get("source_card") == "auto" else 0

    @property
    def source_like_anchors(self) -> Anchors:
        return self.low_entropy_anchors

    @property
    def labelled_anchors(self) -> Anchors:
        return self.high_entropy_anchors

    def predict(self, inputs: Tensor) -> Prediction:
        prediction = super().predict(inputs)
        if self.home is None or len(inputs) == 0:
            return prediction
        return self.home.mixed_into(prediction, self.place(inputs))

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        network = self._network(batch.inputs)
        with torch.no_grad():
            prediction, activations = network.run(batch.inputs)
        self.model.keep_statistics(batch.samples)
        if self.home is not None:
            prediction = self.home.mixed_into(prediction, batch.inputs)
            self.home.keep(batch.samples)
        entropy = softmax_entropy(prediction.logits)
        self.bounds.observe(entropy.tolist(), prediction.logits.shape[1])
        kept = None if network.is_whole else activations
        uncertain = waiting_rows(batch, prediction, kept).take(self._unsure(entropy))
        allowance = self.due(batch, allowance)
        # IC(D_h(t-1), U_h(t), NC(t)) within the budget (Algorithm 1, line 5).
        queries, choice = self.ask(uncertain, self._covered(uncertain, allowance), allowance)
        self._take_confident(batch, kept, asked={query.sample for query in queries})
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
        low, high = self.low_entropy_anchors, self.high_entropy_anchors
        if len(high) == 0:
            return Training()
        network = self._network(high.rows.inputs)
        model = self.model if network.is_whole else network
        return self.trainer.fit(model, low, high, self.step_count)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state. Earlier versions had no styles and no card."""
        missing: dict[str, Any] = {"styles": {}, "home": None if self.home is None else {}}
        super().load_state_dict({**missing, **state})

    def forget(self, samples: Collection[SampleId]) -> None:
        super().forget(samples)
        self.styles.forget(samples)
        if self.home is not None:
            self.home.forget(samples)

    def _network(self, inputs: Tensor) -> Split:
        """Return the adapting model, split before the first layer that trains."""
        if self._split is None:
            self._split = find_split(self.model, inputs)
        return self._split

    def _look_again(self, entry: Tensor) -> Prediction:
        """Return the current model's predictions for stored samples."""
        assert self._split is not None, "found before anything is stored"
        with torch.no_grad(), steady_statistics(self.model):
            prediction: Prediction = self._split(self.place(entry))
        return prediction

    def _unsure(self, entropy: Tensor) -> list[int]:
        """U_h(t): samples that the adapting model is unsure about (Algorithm 1, line 4)."""
        unsure = entropy >= self.bounds.high if self.include_bound else entropy > self.bounds.high
        return unsure.nonzero().flatten().tolist()

    def _covered(self, uncertain: LabelledRows, allowance: Allowance) -> tuple[StoredRows, ...]:
        """D_h(t-1) and open questions, with features of the current model if they are needed."""
        if allowance.limit == 0 or len(uncertain) == 0:
            return ()
        self.high_entropy_anchors.refresh(self._look_again)
        self.waiting.refresh(self._look_again)
        return self.high_entropy_anchors, self.waiting

    def _take_confident(
        self, batch: Batch, activations: Tensor | None, asked: set[SampleId]
    ) -> None:
        """D_l(t): samples that the source model is sure about (Algorithm 1, line 3)."""
        if self.bounds.low == 0 and not self.bounds.low_is_fitted:
            return
        network = self._network(batch.inputs)
        source_network = Split(self.source_model, network.layer, network.empty)
        with torch.no_grad():
            source = source_network(batch.inputs if activations is None else activations)
        entropy = softmax_entropy(source.logits)
        trusted = self._trusted(batch, entropy, asked)
        self.bounds.observe_source(entropy.tolist())
        below = [place for place in trusted if entropy[place] < self.bounds.low]
        rows = waiting_rows(batch, source, activations).take(below)
        self.low_entropy_anchors.add(replace(rows, labels=rows.logits.argmax(dim=1)))

    def _trusted(self, batch: Batch, entropy: Tensor, asked: set[SampleId]) -> list[int]:
        """Return samples that may get a pseudo-label, surest first."""
        order: list[int] = entropy.argsort(stable=True).tolist()
        if self.trust_asked:
            return order
        return [place for place in order if batch.samples[place] not in asked]


def _trains_first(model: Classifier) -> bool:
    """True if the first convolution trains, so that stored samples pass it and show their style."""
    first = first_convolution(model.model)
    return first is not None and any(each.requires_grad for each in first.parameters())


def _capacity(value: Capacity) -> int | None:
    if value == "unlimited":
        return None
    if isinstance(value, str):
        raise SettingError(
            f"SimATTA: low_entropy_capacity must be a number or 'unlimited', got {value!r}."
        )
    check_count("SimATTA", "low_entropy_capacity", value)
    return value
