"""Anchor head: a frozen network, blended statistics, and a small convex head on labelled samples.

Batch-norm statistics are mixed from the source's and the stream's. A regularised logistic
regression on features from several depths corrects the network's logits. It is fitted to all
labelled samples to convergence, which takes milliseconds. Labelled samples are stored as features,
logits and, in small networks, activations; no inputs are stored. The network is not trained, except
its last stages if there are enough labels (`attakit.methods.late_training`).

The uncertainty-weighted clustering is CLUE's (Prabhu et al., ICCV 2021). Mixing statistics goes
back to Schneider et al., NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from attakit.errors import check_count, check_range
from attakit.methods import views
from attakit.methods.asking import AskingMethod
from attakit.methods.late_training import LateTraining, Trained
from attakit.methods.views import View
from attakit.nn.blended import SOURCE_SHARE, SourceShare
from attakit.nn.class_mix import MixChanges
from attakit.nn.depths import find_depths, predict_with_depths
from attakit.nn.domain_mean import DomainMean
from attakit.nn.frozen_head import FrozenHead
from attakit.nn.neighbours import smooth
from attakit.nn.network_state import NetworkState
from attakit.nn.source_card import CARD_SAMPLES, read_or_make_card, style_groups
from attakit.nn.tail import Kept
from attakit.protocols import LearnsAtOnce, NeedsSource, Selector
from attakit.queries import Allowance, Answer, Query, QuestionKind, SampleId
from attakit.records import Batch, Choice, Prediction, Step, Training
from attakit.select.clue import CLUE
from attakit.select.label_rate import LabelRate
from attakit.store.anchors import Anchors
from attakit.store.recent import Recent
from attakit.store.stored_rows import covered_rows
from attakit.train.anchored import Hedge, Penalty, ResidualHead
from attakit.train.experts import Experts

Layers = Sequence[str] | Literal["auto"]

_SMALLEST = 1e-8
_AFTER_DRIFT = 16  # weight of old statistics in a new domain, in samples


class AnchorHead(AskingMethod, LearnsAtOnce, NeedsSource):
    """Corrects a frozen network with a small head that is fitted to the labelled samples.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    source_share
        Weight of the source's batch-norm statistics, 0 to 1; the stream has the rest. 1 uses only
        the source's. "auto" tries several on the first samples of a domain, and on labelled ones.
        Models without batch norm have nothing to mix.
    window
        Number of recent samples in the statistics, if a batch has fewer.
    memory
        Number of recent samples for smoothing.
    styles
        Maximum number of styles (domains) that the stream may mix at a time. Each has its own
        statistics and its own feature mean. 1 treats the stream as one style. Only models with
        convolutions have styles.
    lasting_styles
        Keep styles that the stream does not have now, in case they return.
    source_card
        What source samples look like to the model: a file that `attakit pretrain` or `attakit card`
        wrote, "auto" to make it from `source_inputs`, or "stored" to guess it from the stored
        statistics of the first batch norm. Samples that look like the source's then get the source
        model's answer. None uses no card.
    source_inputs
        A few hundred training inputs of the model, for the card.
    layers
        Names of layers whose inputs are features, in addition to the penultimate ones, or "auto".
    penalty
        How strongly the head is held to the network's answer, or "auto" for cross-validation.
    hedge
        Share of the network's own answer in the prediction, 0 to 1. "auto" starts with 0.3 and
        follows cross-validation on the labelled samples.
    smoothing
        How much a prediction leans towards those of similar samples. 0 disables it.
    competing
        Let two more answers compete with the method's own by what they said before labels came: one
        follows the batch's mix of classes, one the agreement among its samples. They help where
        classes come in runs.
    train_from
        Number of labelled samples before the last stages of the network train; 0 never trains them.
        They train only if that helps on held-out labelled samples. Anchors then store what training
        needs, at most 20 kB each. A network that needs more is not trained.
    selector
        Chooses among the samples of a batch; by default uncertainty-weighted clustering.
    rate
        The label rate; by default the budget is spread over the stream, with some extra labels at
        the first batch and at the start of a new domain.
    question
        What to ask: "class", or "yes_no" to ask whether the predicted class is right. A "no" trains
        as an excluded class.
    seed
        Seed of the clustering.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = AnchorHead(tiny_classifier())
    >>> step = method.step(tiny_batch(), Allowance(10))
    >>> len(step.queries)
    2
    >>> method.learn([Answer(query, 0, "me") for query in step.queries]).numbers["anchors"]
    2.0
    """

    stateful = (
        "network",
        "statistics",
        "styles",
        "layers",
        "domain",
        "recent",
        "rate",
        "waiting",
        "anchors",
        "head",
        "late",
        "experts",
        "mix",
    )

    def __init__(
        self,
        model: nn.Module,
        *,
        source_share: SourceShare = "auto",
        window: int = 100,
        memory: int = 300,
        styles: int = 4,
        lasting_styles: bool = False,
        source_card: str | Path | None = None,
        source_inputs: Tensor | None = None,
        layers: Layers = "auto",
        penalty: Penalty = "auto",
        hedge: Hedge = "auto",
        smoothing: float = 0.7,
        competing: bool = True,
        train_from: int = 200,
        selector: Selector | None = None,
        rate: LabelRate | None = None,
        question: QuestionKind = "class",
        seed: int = 0,
    ) -> None:
        selector = selector or CLUE(seed=seed)
        super().__init__(model, selector=selector, rate=rate, question=question)
        check_range("AnchorHead", "smoothing", smoothing, at_least=0)
        check_count("AnchorHead", "train_from", train_from, at_least=0)
        self.network = NetworkState(self.model.model)
        card = read_or_make_card(model, source_card, source_inputs)
        self.styles = style_groups(self.model, card, most=styles, lasting=lasting_styles)
        self.model.use_norm("blended", source_share=source_share, window=window, groups=self.styles)
        assert self.model.stream is not None
        self.statistics = self.model.stream
        self.layers = None if layers == "auto" else views.layer_names(layers)
        self.smoothing = smoothing
        self.domain = DomainMean()
        self.recent = Recent(capacity=memory)
        self.anchors = Anchors()
        self.head = ResidualHead(penalty=penalty, hedge=hedge)
        self.mix = MixChanges()
        self.experts = (
            Experts(views.EXPERTS, views.EXPERTS_IN_RUNS) if competing else Experts((1.0,))
        )
        self.late = LateTraining(self.model, first=train_from, seed=seed)

    @staticmethod
    def service_settings() -> Mapping[str, Any]:
        """Return settings for frozen versions, which must answer any style that comes next."""
        return {"source_share": SOURCE_SHARE, "lasting_styles": True}

    @staticmethod
    def source_input_count(settings: Mapping[str, Any]) -> int:
        return CARD_SAMPLES if settings.get("source_card") == "auto" else 0

    @property
    def adapted_model(self) -> FrozenHead:
        """The current network, statistics, style groups, means and head; no smoothing."""
        state = self.domain.state
        return FrozenHead.of(
            self.model,
            self.layers or (),
            None if state is None else state.centre,
            self.head.weights,
            self.head.hedge,
        )

    @property
    def labelled_anchors(self) -> Anchors:
        return self.anchors

    def predict(self, inputs: Tensor) -> Prediction:
        inputs = self.place(inputs)
        return self._view(inputs).prediction if len(inputs) else self.answer(self.model, inputs)

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        if self.layers is None:
            self.layers = list(find_depths(self.model, batch.inputs))
        self.late.look(batch.inputs, self.layers)
        with self.late.watching_entry() as entry:
            view = self._view(batch.inputs)
        kept = self.late.kept(entry, view.centre)
        self._keep(view, batch)
        queries, choice = self._ask(batch, view, kept, allowance)
        self._try_shares(batch, queries)
        self.recent.add(batch.samples, view.features, view.offsets)
        return Step(view.prediction, queries, {"domains": float(view.domain.domains)}, choice)

    def learn(self, answers: Sequence[Answer]) -> Training:
        self.statistics.share.learn(answers)
        self.experts.learn(answers)
        labelled = self.waiting.resolve(answers)
        if labelled is None or len(labelled) == 0:
            return Training()
        self.anchors.add(labelled)
        self.head.fit(self.anchors.rows)
        self._train_stages()
        numbers = {
            "anchors": float(len(self.anchors)),
            "penalty": self.head.penalty,
            "hedge": self.head.hedge,
        }
        if self.late.trained is None:  # otherwise more than the head has learned from the labels
            numbers["dimension"] = float(self.head.dimension)
        return Training(1, {**numbers, **self.late.numbers})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state. Those of version 0.2.0 have no experts."""
        missing = {"experts": Experts(()).state_dict(), "mix": MixChanges().state_dict()}
        super().load_state_dict({**missing, **state})

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove samples. The head is fitted again as if they had never arrived."""
        before = len(self.anchors)
        super().forget(samples)
        self.recent.forget(samples)
        self.styles.forget(samples)
        self.statistics.share.forget(samples)
        self.experts.forget(samples)
        if len(self.anchors) == before:
            return
        self.late.restart()
        self._put_stages(None)
        self.head.refit(self.anchors.rows)
        self._train_stages()

    def _train_stages(self) -> None:
        """Train the last stages on all anchors if it is due, and use them if that helps."""
        if self.late.is_due(self.anchors):
            penalty, hedge = self.head.penalty, self.head.hedge
            self._put_stages(self.late.train(self.anchors.rows, penalty=penalty, hedge=hedge))

    def _put_stages(self, trained: Trained | None) -> None:
        """Use other last stages; None for the source's."""
        if trained is not None or self.late.trained is not None:
            self.late.put(trained, self.domain, (self.anchors, self.waiting))
            self.recent.clear()
            self.head.refit(self.anchors.rows)

    def _view(self, inputs: Tensor) -> View:
        """Compute everything that follows from a batch and the current state; changes nothing."""
        layers = self.layers
        if layers is None:
            layers = list(find_depths(self.model, inputs))
        found = predict_with_depths(self.model, inputs, layers)
        grouping = self.statistics.grouping
        domain = self.domain.after(found.features, grouping)
        centre = views.members_of(grouping, found.features) @ domain.centre
        features = F.normalize(found.features - centre, dim=1)
        offsets = found.prediction.logits
        drifted = self.domain.state is not None and domain.domains > self.domain.state.domains
        old = self.recent.all(features, offsets)
        if drifted and len(domain.mean) == 1:
            old = features[:0], offsets[:0]
        before, memory = (self.head.chances(*rows) for rows in ((features, offsets), old))
        known = views.with_anchors(self.anchors, self.head, old[0], memory)
        own = smooth(before, features, known, strength=self.smoothing)
        several = len(self.experts.prior) > 1
        said = views.expert_answers(own, found.prediction) if several else own[None]
        own = self.experts.average(said, self.mix.probability(own))
        if grouping is not None and bool(grouping.home.any()):
            home = self.late.source_logits(inputs, offsets).softmax(dim=1)
            own = own.lerp(home, grouping.home.to(own)[:, None])
        prediction = Prediction(own.clamp(min=_SMALLEST).log(), found.prediction.features)
        return View(
            prediction, features, offsets, before, memory, layers, domain, centre, drifted, said
        )

    def _keep(self, view: View, batch: Batch) -> None:
        """Update the state with a batch."""
        self.model.keep_statistics(batch.samples)
        self.domain.keep(view.domain)
        if view.drifted:
            self.mix.new_domain()
            self.statistics.search_again(self.model.model, batch.inputs)
        self.mix.keep(view.said[0])
        if view.drifted and len(view.domain.mean) == 1:
            self.recent.clear()
            self.statistics.shorten(_AFTER_DRIFT)

    def _ask(
        self, batch: Batch, view: View, kept: Kept | None, allowance: Allowance
    ) -> tuple[tuple[Query, ...], Choice]:
        """Ask about the due number of samples. A replayed step asks what it asked before."""
        allowance = self.due(batch, allowance, drifted=view.drifted)
        candidates = views.candidates_of(batch, view, views.unsure_places(view))
        known = covered_rows((self.anchors, self.waiting), like=candidates)
        selection = self.select(candidates, known, allowance)
        proposals = self.proposals(candidates, allowance)
        places = views.places_of(batch, selection.samples)
        rows = views.rows_without_inputs(batch, view, places, self.late.pack(kept, places))
        queries = self.waiting.hold_chosen(rows, selection, batch.step, proposals)
        asked, places = views.asked_places(batch, queries)
        self.experts.hold(asked, view.said[:, places])
        return queries, Choice(candidates, known, selection)

    def _try_shares(self, batch: Batch, queries: Sequence[Query]) -> None:
        """Compare shares of the source's statistics on samples in question."""
        asked, places = views.asked_places(batch, queries)
        self.statistics.compare_shares(self.model.model, asked, batch.inputs[places])
