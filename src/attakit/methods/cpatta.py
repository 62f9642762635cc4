"""CPATTA: conformal scores choose what people label and what the model labels itself.

Shi, Lyu and Peng, "Annotation-efficient active test-time adaptation with conformal prediction",
2025, the section on the method. https://arxiv.org/abs/2509.25692

Two models process every batch, the adapting one and the source model, each with its own conformal
threshold. People label the samples that the adapting model is least certain about, more at the
start of a new domain. The samples that the source model is most certain about get the adapting
model's label. Training has two stages: all labels of people, then all others.

Settings are those of the authors' configuration for PACS. With its `top = 1` the certainty of a
sample rises with its highest probability, so the thresholds do not change the choice. With `top =
2` and more they do. Deliberate differences from the authors' code:

- The budget is a hard cap. The pace is a label rate (3 per batch, 10 at the first one and at a
  shift), so that `[labels]` can set another.
- Answers may be late or missing. A stage trains on what is there. Nothing trains before the first
  label.
- A sample that people are asked about gets no label of the model.
- The number of the model's labels kept is bounded. People's labels are all kept.
- Ties are broken by place, not at random, and the threshold is exact, not from a grid.
- Without labelled source samples, people's labels are the calibration samples. These are the least
  certain samples of the stream, so thresholds are lower than with source samples.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD

from attakit.errors import SettingError, check_count, check_range
from attakit.methods.asking import AskingMethod
from attakit.nn.classifier import Classifier
from attakit.nn.trainable import trainable_parameters
from attakit.queries import Allowance, Answer, SampleId
from attakit.randomness import generator
from attakit.records import Batch, LabelledRows, Step, Training
from attakit.select.conformal import ConformalThreshold, LeastCertain, certainty
from attakit.select.finite import check_finite
from attakit.select.label_rate import LabelRate
from attakit.store.anchors import Anchors
from attakit.store.waiting import waiting_rows
from attakit.train.answers import answer_loss
from attakit.train.descent import descend

CALIBRATION_SAMPLES = 500
_AT_ONCE = 100  # calibration samples per pass


class CPATTA(AskingMethod):
    """Asks if conformal certainty is low, and trusts itself if the source model's is high.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied. Norm layers keep the source's statistics.
    source_inputs, source_labels
        Labelled samples of the source, for the thresholds. They are stored. Samples that the model
        was not trained on are best. Without them, labels from the stream are used.
    calibration_samples
        At most this many of them are used.
    miscoverage
        α: the share of true classes that the prediction sets may miss.
    temperature, top
        Settings of the certainty: T of the smoothing, and how many of the highest scores are
        averaged.
    pseudo_labels
        Samples per batch that get the model's own label.
    pseudo_capacity
        Number of such samples to store, as a uniform draw from all.
    shift_factor
        A new domain begins if the mean features turn by this many times more than on average.
    lr, pseudo_lr, momentum, batch_size
        Settings of the two stages. Each passes once over its samples.
    trainable
        The parameters to train: "all", "auto", "norm", "head" or "last:N".
    rate
        The label rate; by default 3 per batch, and 7 more at the first one and at a shift.
    seed
        Seed of the order of samples, and of which labels of the model are kept.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> source = tiny_batch(9, size=30)
    >>> labels = torch.zeros(30, dtype=torch.long)
    >>> method = CPATTA(tiny_classifier(), source_inputs=source.inputs, source_labels=labels)
    >>> len(method.step(tiny_batch(size=40), Allowance(50)).queries)
    10
    """

    stateful = (
        "model",
        "waiting",
        "rate",
        "labelled",
        "pseudo_labelled",
        "threshold",
        "source_threshold",
        "shift",
        "has_news",
        "learn_count",
    )

    def __init__(
        self,
        model: nn.Module,
        *,
        source_inputs: Tensor | None = None,
        source_labels: Tensor | None = None,
        calibration_samples: int = CALIBRATION_SAMPLES,
        miscoverage: float = 0.2,
        temperature: float = 1.0,
        top: int = 1,
        pseudo_labels: int = 5,
        pseudo_capacity: int = 500,
        shift_factor: float = 3.0,
        lr: float = 1e-3,
        pseudo_lr: float = 1e-4,
        momentum: float = 0.9,
        batch_size: int = 16,
        trainable: str = "all",
        rate: LabelRate | None = None,
        seed: int = 0,
    ) -> None:
        for name, value in {"lr": lr, "pseudo_lr": pseudo_lr, "temperature": temperature}.items():
            check_range("CPATTA", name, value, above=0)
        check_range("CPATTA", "momentum", momentum, at_least=0, at_most=1)
        check_range("CPATTA", "shift_factor", shift_factor, above=0)
        for name, count in {"top": top, "batch_size": batch_size}.items():
            check_count("CPATTA", name, count)
        check_count("CPATTA", "pseudo_labels", pseudo_labels, at_least=0)
        check_count("CPATTA", "calibration_samples", calibration_samples, at_least=1)
        pace = LabelRate(per_batch=3, first=7, at_drift=7) if rate is None else rate
        super().__init__(model, selector=LeastCertain(temperature=temperature, top=top), rate=pace)
        self.source_model = copy.deepcopy(self.model)
        self.trained = trainable_parameters(self.model, trainable)
        self.calibration = _checked(source_inputs, source_labels, calibration_samples)
        self.threshold = ConformalThreshold(miscoverage=miscoverage)
        self.source_threshold = ConformalThreshold(miscoverage=miscoverage)
        self._source_shares: list[float] | None = None
        self.shift = FeatureShift(factor=shift_factor)
        self.temperature = temperature
        self.top = top
        self.pseudo_labels = pseudo_labels
        self.lr = lr
        self.pseudo_lr = pseudo_lr
        self.momentum = momentum
        self.batch_size = batch_size
        self.seed = seed
        self.labelled = Anchors()
        self.pseudo_labelled = Anchors(capacity=pseudo_capacity, seed=seed)
        self.has_news = False  # True if samples arrived since the last training
        self.learn_count = 0

    @staticmethod
    def source_input_count(settings: Mapping[str, Any]) -> int:
        """Return how many labelled source samples these settings can use."""
        count: int = settings.get("calibration_samples", CALIBRATION_SAMPLES)
        return count

    @property
    def labelled_anchors(self) -> Anchors:
        return self.labelled

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        prediction = self.answer(self.model, batch.inputs)
        source = self.answer(self.source_model, batch.inputs)
        shares, source_shares = (each.logits.double().softmax(1) for each in (prediction, source))
        check_finite("CPATTA", "logits", shares)
        self.threshold.calibrate(self._true_class_shares(self.model))
        self.source_threshold.calibrate(self._source_calibration())
        own = shares.argmax(dim=1)
        self.threshold.observe(shares, own)
        self.source_threshold.observe(source_shares, own)
        drifted = self.shift.observe(source.features)
        self.selector = LeastCertain(
            self.threshold.value, temperature=self.temperature, top=self.top
        )
        rows = waiting_rows(batch, prediction)
        allowance = self.due(batch, allowance, drifted=drifted)
        queries, choice = self.ask(rows, (self.labelled, self.waiting), allowance)
        self._take_certain(rows, source_shares, {query.sample for query in queries})
        numbers = {
            "threshold": self.threshold.value,
            "source_threshold": self.source_threshold.value,
            "shifted": float(drifted),
        }
        return Step(prediction, queries, numbers, choice)

    def learn(self, answers: Sequence[Answer]) -> Training:
        fresh = self.waiting.resolve(answers)
        if fresh is not None and len(fresh):
            self.labelled.add(fresh)
            self.pseudo_labelled.forget(fresh.samples)
            self.has_news = True
        if len(self.labelled) == 0 or not self.has_news:
            return Training()
        self.has_news = False
        self.learn_count += 1
        first, labelled_loss = self._pass_over(self.labelled, "labelled", self.lr)
        second, pseudo_loss = self._pass_over(self.pseudo_labelled, "pseudo", self.pseudo_lr)
        numbers = {
            "labelled_loss": labelled_loss,
            "pseudo_loss": pseudo_loss,
            "labelled": float(len(self.labelled)),
            "pseudo_labelled": float(len(self.pseudo_labelled)),
        }
        return Training(first + second, numbers)

    def _true_class_shares(self, model: Classifier) -> list[float]:
        """Return a model's probability of the true class of each calibration sample."""
        inputs, labels = self.calibration or self._from_stream()
        shares = [
            self.answer(model, self.place(part)).logits.double().softmax(dim=1).cpu()
            for part in torch.split(inputs, _AT_ONCE)
            if len(part)
        ]
        if not shares:
            return []
        found: list[float] = torch.cat(shares).gather(1, labels.cpu()[:, None]).flatten().tolist()
        return found

    def _source_calibration(self) -> list[float]:
        """Return the same for the source model, computed once if its samples do not change."""
        if self._source_shares is None or self.calibration is None:
            self._source_shares = self._true_class_shares(self.source_model)
        return self._source_shares

    def _from_stream(self) -> tuple[Tensor, Tensor]:
        if len(self.labelled) == 0:
            return torch.zeros(0, 1), torch.zeros(0, dtype=torch.long)
        rows = self.labelled.rows.only_labelled()  # a threshold needs the true class
        return rows.inputs, rows.labels

    def _take_certain(
        self, rows: LabelledRows, source_shares: Tensor, asked: set[SampleId]
    ) -> None:
        """Store samples that the source model is surest about, with the adapting model's labels."""
        sure = certainty(
            source_shares,
            self.source_threshold.value,
            temperature=self.temperature,
            top=self.top,
        )
        closed = asked | ({*self.labelled.rows.samples} if len(self.labelled) else set())
        order = sure.argsort(descending=True, stable=True).tolist()
        free = [place for place in order if rows.samples[place] not in closed]
        chosen = rows.take(free[: self.pseudo_labels])
        if len(chosen):
            self.pseudo_labelled.add(replace(chosen, labels=chosen.logits.argmax(dim=1)))
            self.has_news = True

    def _pass_over(self, anchors: Anchors, stage: str, lr: float) -> tuple[int, float]:
        """Train once on every sample; return the number of updates and the last loss."""
        count, loss = 0, 0.0
        optimizer = SGD(self.trained, lr=lr, momentum=self.momentum)
        order = generator(self.seed, f"cpatta {stage}", self.learn_count).permutation(len(anchors))
        for start in range(0, len(order), self.batch_size):
            rows = anchors.rows.take(order[start : start + self.batch_size].tolist())
            logits = self.model(rows.inputs).logits
            loss = descend("CPATTA", optimizer, answer_loss(logits, rows))
            count += 1
        optimizer.zero_grad(set_to_none=True)
        return count, loss


class FeatureShift:
    """Detects whether the mean features of a batch turned away from those of the batch before.

    Parameters
    ----------
    factor
        The signal is one minus the cosine between the two means. It counts as a shift if it exceeds
        this many times its average over all batches so far, including this one.

    Examples
    --------
    >>> shift = FeatureShift(factor=1.5)
    >>> batches = [[1.0, 0.0], [1.0, 0.1], [1.0, 0.0], [0.0, 1.0]]
    >>> [shift.observe(torch.tensor([features])) for features in batches]
    [False, False, False, True]
    """

    def __init__(self, *, factor: float = 3.0) -> None:
        self.factor = factor
        self.mean: Tensor | None = None
        self.total, self.count = 0.0, 0

    def observe(self, features: Tensor) -> bool:
        """Process the features of a batch; returns True if a new domain begins with it."""
        before, self.mean = self.mean, features.detach().double().mean(dim=0)
        if before is None:
            return False
        signal = 1 - F.cosine_similarity(before.to(self.mean), self.mean, dim=0).item()
        self.total, self.count = self.total + signal, self.count + 1
        return signal > self.factor * self.total / self.count

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "total": self.total, "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.mean, self.total, self.count = state["mean"], state["total"], state["count"]


def _checked(
    inputs: Tensor | None, labels: Tensor | None, most: int
) -> tuple[Tensor, Tensor] | None:
    """Check the calibration samples: both given, one label per input, or neither."""
    if inputs is None and labels is None:
        return None
    if isinstance(inputs, Tensor) and isinstance(labels, Tensor) and len(inputs) == len(labels):
        return inputs[:most], labels[:most].long()
    raise SettingError(
        "CPATTA: source_inputs and source_labels must be tensors with one row per sample, got "
        f"{_shape(inputs)} and {_shape(labels)}. Leave out both to calibrate with labels of the "
        "stream."
    )


def _shape(value: object) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else repr(value)
