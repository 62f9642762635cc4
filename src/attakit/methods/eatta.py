"""EATTA: one label per batch, for the sample whose answer a small push changes most.

Wang and Ding, "Effortless active labeling for long-term test-time adaptation", CVPR 2025, section
3. https://arxiv.org/abs/2503.14564

Written from the paper's description. The authors' repository was out of reach; two public copies of
its file agree with each other, and this method with them (`tests/methods/reference`). Deliberate
differences, most of them because answers may be late or missing here:

- The label and the entropy share one step, so the step waits for the answer. If none arrives by the
  next batch, the model minimises the entropy alone, after it has answered that batch. A late label
  joins the next step.
- A labelled sample passes through the model together with the latest batch, because it needs
  batch statistics.
- If one of the two losses is missing, the other has weight 1, and the balance stays unchanged.
  The formula would give a weight of 0 to a label without reliable samples.
- On ImageNet those copies train all weights of layer1, not only norm layers. Here only norm layers
  train, as the paper writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.optim import SGD

from attakit.errors import DoesNotApply, check_choice, check_count, check_range
from attakit.methods.asking import AskingMethod
from attakit.nn.classifier import Classifier
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import STREAM_NORMS, StreamNorm
from attakit.nn.shapes import as_logits
from attakit.nn.steady import steady_statistics
from attakit.nn.trainable import early_norm_parameters, trainable_parameters
from attakit.queries import Allowance, Answer
from attakit.randomness import generator
from attakit.records import Batch, LabelledRows, Step, Training
from attakit.select.finite import check_finite
from attakit.select.label_rate import LabelRate
from attakit.select.sensitivity import Sensitivity
from attakit.store.anchors import Anchors
from attakit.store.latest import Latest, in_company
from attakit.store.waiting import waiting_rows
from attakit.train.answers import answer_loss
from attakit.train.descent import checked_loss, descend


class EATTA(AskingMethod):
    """Asks about one sample per batch, and balances its loss with the entropy of the others.

    Only scales and shifts of normalisation layers train, and batch-norm layers use the statistics
    of the batch (or blended ones).

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Settings of the gradient step. The paper's experiments are on ImageNet, where 2.5e-4 is
        usual.
    noise
        Standard deviation of the Gaussian noise on the features, which finds the sample to ask
        about.
    reliable_share
        The entropy of a sample is lowered if it is below this share of ln(classes).
    balance_momentum
        Share of the old loss weights in the new ones.
    labelled_capacity
        Number of labelled samples to store and train on again. The oldest are removed first. 0 uses
        each label once. The paper's variant with a memory has 300.
    batch_size
        Maximum number of labelled samples per update, filled up with stored ones.
    left_out
        Share of the last blocks whose norm layers do not train. A quarter excludes layer4 of a
        ResNet, as for ImageNet.
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    rate
        The label rate; by default one per batch.
    seed
        Seed of the noise and the draws from kept samples.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = EATTA(tiny_classifier())
    >>> len(method.step(tiny_batch(), Allowance(5)).queries)
    1
    """

    stateful = (
        "model",
        "optimizer",
        "waiting",
        "rate",
        "latest",
        "kept",
        "asked_scores",
        "recent",
        "balance",
        "learn_count",
    )

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 2.5e-4,
        momentum: float = 0.9,
        noise: float = 0.01,
        reliable_share: float = 0.4,
        balance_momentum: float = 0.8,
        labelled_capacity: int = 0,
        batch_size: int = 32,
        left_out: float = 0.0,
        norm: StreamNorm = "batch",
        rate: LabelRate | None = None,
        seed: int = 0,
    ) -> None:
        check_range("EATTA", "lr", lr, above=0)
        check_range("EATTA", "momentum", momentum, at_least=0, at_most=1)
        check_range("EATTA", "noise", noise, above=0)
        check_range("EATTA", "reliable_share", reliable_share, at_least=0, at_most=1)
        check_range("EATTA", "balance_momentum", balance_momentum, at_least=0, at_most=1)
        check_range("EATTA", "left_out", left_out, at_least=0, at_most=1)
        check_count("EATTA", "labelled_capacity", labelled_capacity, at_least=0)
        check_count("EATTA", "batch_size", batch_size)
        pace = LabelRate(per_batch=1, first=0, at_drift=0) if rate is None else rate
        super().__init__(model, selector=Sensitivity({}), rate=pace)
        check_choice("EATTA", "norm", norm, STREAM_NORMS)
        self.model.use_norm(norm, source_share="auto")
        self.trained = (
            early_norm_parameters(self.model, left_out)
            if left_out
            else trainable_parameters(self.model, "norm")
        )
        self.optimizer = SGD(self.trained, lr=lr, momentum=momentum)
        self.noise = noise
        self.reliable_share = reliable_share
        self.balance_momentum = balance_momentum
        self.labelled_capacity = labelled_capacity
        self.batch_size = batch_size
        self.seed = seed
        self.latest = Latest()
        self.kept = Anchors()
        self.asked_scores: dict[str, float] = {}  # score of each class when it was last asked about
        self.recent: list[int] = []  # classes that were asked about recently
        self.balance: list[float] | None = None  # weights of the entropy and of the labelled loss
        self.learn_count = 0

    @property
    def labelled_anchors(self) -> Anchors:
        return self.kept

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        prediction = self.answer(self.model, batch.inputs)
        self.model.keep_statistics()
        if self.latest.due:  # the answer to the previous batch did not arrive in time
            self._update(None)
        rows = waiting_rows(batch, prediction)
        self.latest.hold(rows)
        allowance = self.due(batch, allowance)
        scores = self._sensitivity(rows)
        self.selector = turns = Sensitivity(scores, self.asked_scores, self.recent)
        queries, choice = self.ask(rows, (self.kept, self.waiting), allowance)
        asked = {query.sample for query in queries}
        for sample, kind in zip(rows.samples, rows.logits.argmax(dim=1).tolist(), strict=True):
            if sample in asked and not turns.passes(kind, scores[sample]):
                self.asked_scores = {**self.asked_scores, str(kind): scores[sample]}
                recent = [*self.recent, kind]
                # The two latest classes, then only the third one, and so on: as in that code.
                self.recent = recent if len(recent) <= RECENT else recent[-1:]
        return Step(prediction, queries, choice=choice)

    def learn(self, answers: Sequence[Answer]) -> Training:
        labelled = self.waiting.resolve(answers)
        if labelled is None or len(labelled) == 0:
            may_come = self.latest.waits_for(self.waiting)
            return Training() if may_come or not self.latest.due else self._update(None)
        return self._update(labelled)

    def _sensitivity(self, rows: LabelledRows) -> dict[str, float]:
        """Return how much noise on its features changes the probability of each sample's answer."""
        drawn = generator(self.seed, "feature noise", self.step_count)
        noise = torch.as_tensor(drawn.normal(scale=self.noise, size=tuple(rows.features.shape)))
        with torch.no_grad():
            moved = head_logits(self.model, rows.features + noise.to(rows.features))
            still = head_logits(self.model, rows.features)
        own = rows.logits.argmax(dim=1, keepdim=True)
        before = rows.logits.softmax(dim=1).gather(1, own)
        after = (rows.logits + moved - still).softmax(dim=1).gather(1, own)
        change = (before - after).abs().flatten()
        check_finite("EATTA", "features and logits", change)
        return dict(zip(rows.samples, change.tolist(), strict=True))

    def _update(self, labelled: LabelledRows | None) -> Training:
        """Take one step on the labelled samples and, if it is due, on the latest batch."""
        rows = self._with_kept(labelled)
        inputs = self.latest.rows.inputs if rows is None else in_company(rows, self.latest)
        count = 0 if rows is None else len(rows)
        with steady_statistics(self.model):
            logits = self.model(inputs).logits
        losses: dict[str, Tensor] = {}
        if self.latest.due:
            losses |= self._entropy(logits[count:])
        if rows is not None:
            losses["labelled_loss"] = answer_loss(logits[:count], rows)
        self.latest.adapted()
        self.learn_count += 1
        if not losses:
            return Training()
        weights = self._weights(losses)
        total = sum((weights[name] * loss for name, loss in losses.items()), logits.new_zeros(()))
        descend("EATTA", self.optimizer, total)
        numbers = {name: loss.item() for name, loss in losses.items()}
        return Training(1, {**numbers, "labelled_weight": weights.get("labelled_loss", 0.0)})

    def _entropy(self, logits: Tensor) -> dict[str, Tensor]:
        """Return the mean entropy of reliable samples; nothing if there are none."""
        if len(logits) == 0:
            return {}
        entropy = softmax_entropy(logits)
        # NaN is below no margin, so a diverged model would look like a careful one.
        checked_loss("EATTA", self.optimizer, entropy.detach().mean())
        reliable = entropy.detach() < self.reliable_share * math.log(logits.shape[1])
        return {"entropy": entropy[reliable].mean()} if bool(reliable.any()) else {}

    def _weights(self, losses: Mapping[str, Tensor]) -> dict[str, float]:
        """Return loss weights that give both gradients the same length, smoothed over time."""
        if len(losses) < 2:
            return dict.fromkeys(losses, 1.0)
        entropy, labelled = (self._gradient_length(losses[name]) for name in LOSSES)
        if entropy + labelled > 0:
            now = [2 * labelled / (entropy + labelled), 2 * entropy / (entropy + labelled)]
            old = now if self.balance is None else self.balance
            share = self.balance_momentum
            self.balance = [share * a + (1 - share) * b for a, b in zip(old, now, strict=True)]
        return dict(zip(LOSSES, self.balance or (1.0, 1.0), strict=True))

    def _gradient_length(self, loss: Tensor) -> float:
        parts = torch.autograd.grad(
            loss, self.trained, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return math.sqrt(sum(part.square().sum().item() for part in parts))

    def _with_kept(self, labelled: LabelledRows | None) -> LabelledRows | None:
        """Return new labelled samples, filled up with stored ones."""
        if self.labelled_capacity == 0:
            return labelled
        fresh = 0 if labelled is None else len(labelled)
        order = generator(self.seed, "kept", self.learn_count).permutation(len(self.kept))
        old = order[: max(0, self.batch_size - fresh)].tolist()
        drawn = self.kept.rows.take(old) if old else None
        if labelled is not None:
            self.kept.add(labelled)
            self.kept.forget(self.kept.rows.samples[: -self.labelled_capacity])
            return labelled if drawn is None else labelled.join(drawn)
        return drawn


LOSSES = ("entropy", "labelled_loss")
RECENT = 2


def head_logits(model: Classifier, features: Tensor) -> Tensor:
    """Apply the last layer to features.

    >>> model = Classifier(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3)))
    >>> answer = model(torch.ones(1, 2))
    >>> torch.allclose(head_logits(model, answer.features), answer.logits)
    True
    """
    layer = model.head
    if isinstance(layer, _ConvNd):
        places = [1] * (layer.weight.ndim - 2)
        features = features.reshape(*features.shape, *places)
    elif not isinstance(layer, nn.Linear):
        raise DoesNotApply(
            "EATTA: it changes the features before a linear or convolutional layer, but they are "
            f"the input of a {type(layer).__name__}. Choose such a layer (features=…)."
        )
    return as_logits(layer(features.to(layer.weight.dtype)).flatten(1), len(features)).float()
