"""HILTTA: labels choose the settings of another method, batch after batch.

Li et al., "Exploring human-in-the-loop test-time adaptation by synergizing active learning and
model selection", 2024, the sections on model selection and sample selection.
https://arxiv.org/abs/2405.18911

Written from the paper, and compared with the authors' code (`tests/methods/reference`). For every
batch, each candidate setting adapts the model to the unlabelled samples. The labels of a few others
and the distance to the source model score the results, and the best candidate stays. Then one
gradient step of all weights on the labels follows.

Deliberate differences:

- Answers may be late or missing. The choice waits for an answer until the next batch. Without one
  the candidate with the best score so far adapts, or the given settings if there is no score yet.
- Candidates run one after another on one model, and the best runs again. That takes one more pass
  than a copy per candidate, and far less memory.
- A candidate whose loss is not finite is skipped for that batch, and does not end the run.
- In the authors' code every candidate but the first starts where the one before it ended. Here all
  start from the same weights, as the paper writes.
- If all candidates score the same, the first one wins.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from attakit.errors import ModelError, SettingError, check_range
from attakit.methods.asking import AskingMethod
from attakit.methods.base import BaseMethod
from attakit.methods.tent import Tent
from attakit.nn.steady import steady_statistics
from attakit.nn.trainable import training_only
from attakit.protocols import Asks, Forgets, Optimizes, Selector
from attakit.queries import Allowance, Answer, SampleId
from attakit.records import Batch, LabelledRows, Prediction, Step, Training
from attakit.select.k_margin import KMargin
from attakit.select.label_rate import LabelRate
from attakit.store.latest import Latest, in_company
from attakit.store.waiting import Waiting, waiting_rows
from attakit.train.answers import answer_loss
from attakit.train.descent import descend

FACTORS = tuple(10 ** (third / 3) for third in range(-3, 4))  # a tenth to ten times, seven steps
_OUT = 2.0  # normalised loss of a candidate without a finite loss; all others have 1 at most


class HILTTA(AskingMethod):
    """Lets a method adapt with the settings that fit the labelled samples of a batch best.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied. Used only without `method`, because a method has its own
        copy.
    method
        The method inside, which adapts without labels; by default Tent with its defaults.
    candidates
        Settings of the method inside, and the values to choose from. With several settings, every
        combination is a candidate. By default seven values of `lr`, from a tenth to ten times its
        own.
    selector
        Chooses which samples of a batch to ask about; `KMargin` by default.
    rate
        The label rate; by default 32 per 1,000 samples.
    smoothing
        Share of the old score of a candidate in its new one.
    labelled_lr
        Step size of the step of all weights on labelled samples (Adam). 0 leaves it out.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> model = tiny_classifier()
    >>> method = HILTTA(model, method=Tent(model), candidates={"lr": [1e-4, 1e-2]})
    >>> method.candidates
    [{'lr': 0.0001}, {'lr': 0.01}]
    """

    stateful = (
        "method",
        "labelled_optimizer",
        "waiting",
        "rate",
        "latest",
        "scores",
        "turns",
    )

    def __init__(
        self,
        model: nn.Module,
        *,
        method: BaseMethod | None = None,
        candidates: Mapping[str, Sequence[Any]] | None = None,
        selector: Selector | None = None,
        rate: LabelRate | None = None,
        smoothing: float = 0.5,
        labelled_lr: float = 1e-5,
    ) -> None:
        check_range("HILTTA", "smoothing", smoothing, at_least=0, at_most=1)
        check_range("HILTTA", "labelled_lr", labelled_lr, at_least=0)
        # Without super().__init__, which would copy the model again.
        self.method = _checked(method or Tent(model))
        self.model = self.method.model
        self.source_model = copy.deepcopy(self.model).requires_grad_(False)
        self.source_model.use_norm("frozen")
        self.selector = selector or KMargin()
        self.rate = copy.copy(rate) if rate else LabelRate(per_1000=32, first=0, at_drift=0)
        self.candidates = _combinations(self.method, candidates)
        for settings in self.candidates if candidates is not None else ():
            type(self.method)(model, **settings)  # its constructor refuses wrong values
        self.smoothing = smoothing
        self.waiting = Waiting()
        self.latest = Latest()
        self.scores: list[float] = []  # one per candidate; lower is better
        self.turns = 0
        self._trained_inside = [each for each in self.model.parameters() if each.requires_grad]
        weights = list(self.model.parameters())
        self.labelled_optimizer = Adam(weights, lr=labelled_lr) if labelled_lr else None
        for each in weights if labelled_lr else ():
            each.requires_grad_(True)

    @property
    def optimizer(self) -> Optimizer:
        """The optimiser of the method inside."""
        assert isinstance(self.method, Optimizes), "checked when it was given"
        return self.method.optimizer

    @property
    def adapted_model(self) -> nn.Module:
        return self.method.adapted_model

    def predict(self, inputs: Tensor) -> Prediction:
        return self.method.predict(inputs)

    def after_update(self) -> None:
        self.method.after_update()

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        prediction = self.predict(batch.inputs)
        if self.latest.due:  # no answer to the previous batch arrived in time
            self._adapt(None)
        rows = waiting_rows(batch, prediction)
        self.latest.hold(rows)
        queries, choice = self.ask(rows, (self.waiting,), self.due(batch, allowance))
        return Step(prediction, queries, choice=choice)

    def learn(self, answers: Sequence[Answer]) -> Training:
        labelled = self.waiting.resolve(answers)
        if labelled is None or len(labelled) == 0:
            may_come = self.latest.waits_for(self.waiting)
            return Training() if may_come or not self.latest.due else self._adapt(None)
        return self._adapt(labelled)

    def forget(self, samples: Collection[SampleId]) -> None:
        super().forget(samples)
        if isinstance(self.method, Forgets):
            self.method.forget(samples)

    def _adapt(self, labelled: LabelledRows | None) -> Training:
        """Choose, adapt to the latest batch if that is due, and train on the labels."""
        updates, numbers = 0, dict[str, float]()
        if self.latest.due:
            if labelled is not None:
                self._score(labelled)
            numbers |= self._use_best()
            self._adapt_inside(labelled)
            self.turns += 1
            self.latest.adapted()
            updates += 1
        if labelled is not None and self.labelled_optimizer is not None:
            with steady_statistics(self.model):
                logits = self.model(in_company(labelled, self.latest)).logits[: len(labelled)]
            loss = answer_loss(logits, labelled)
            numbers["labelled_loss"] = descend("HILTTA", self.labelled_optimizer, loss)
            self.after_update()
            updates += 1
        return Training(updates, numbers)

    def _adapt_inside(self, labelled: LabelledRows | None) -> None:
        """Let the method inside adapt to the samples of the latest batch without a label."""
        rows = self.latest.rows
        known = set(labelled.samples) if labelled is not None else set()
        rest = [place for place, sample in enumerate(rows.samples) if sample not in known]
        rows = rows.take(rest) if rest else rows
        with training_only(self.model, self._trained_inside):
            self.method.step(Batch(self.turns, rows.samples, rows.inputs), Allowance(0))

    def _score(self, labelled: LabelledRows) -> None:
        """Try every candidate on the latest batch, and update its score."""
        before = copy.deepcopy(self.method.state_dict())
        others = in_company(labelled, self.latest)
        source = self.answer(self.source_model, others).logits[len(labelled) :].softmax(dim=1)
        tried = []
        for settings in self.candidates:
            self._use(settings)
            tried.append(self._try(labelled, others, source))
            self.method.load_state_dict(copy.deepcopy(before))
        losses, distances = zip(*tried, strict=True)
        if not any(math.isfinite(loss) for loss in losses):
            raise ModelError(
                "HILTTA: the loss of every candidate became NaN or infinite. Lower their lr, or "
                "check that the inputs fit the model."
            )
        pairs = zip(normalised(losses), normalised(distances), strict=True)
        now = [loss + distance for loss, distance in pairs]
        old, share = self.scores or now, self.smoothing
        self.scores = [share * a + (1 - share) * b for a, b in zip(old, now, strict=True)]

    def _try(self, labelled: LabelledRows, inputs: Tensor, source: Tensor) -> tuple[float, float]:
        """Return the loss on labelled samples after adapting, and how far the others moved."""
        try:
            self._adapt_inside(labelled)
        except ModelError:
            return math.inf, math.inf
        logits = self.predict(inputs).logits
        loss = answer_loss(logits[: len(labelled)], labelled).item()
        if len(source) == 0:
            return loss, 0.0
        return loss, F.mse_loss(logits[len(labelled) :].softmax(dim=1), source).item()

    def _use_best(self) -> dict[str, float]:
        """Use the best candidate in the method inside; without any score, change nothing."""
        if not self.scores:
            return {}
        best = min(range(len(self.scores)), key=self.scores.__getitem__)
        self._use(self.candidates[best])
        numeric = (int, float)
        return {
            "candidate": float(best),
            **{k: float(v) for k, v in self.candidates[best].items() if isinstance(v, numeric)},
        }

    def _use(self, settings: Mapping[str, Any]) -> None:
        for name, value in settings.items():
            for group in self.optimizer.param_groups:
                if name in group:
                    group[name] = value
            if hasattr(self.method, name):
                setattr(self.method, name, value)


def normalised(values: Sequence[float]) -> list[float]:
    """Scale values to 0 for the smallest and 1 for the largest; not finite ones become 2.

    >>> normalised([1.0, 3.0, 2.0, math.inf])
    [0.0, 1.0, 0.5, 2.0]
    """
    real = [value for value in values if math.isfinite(value)]
    low, spread = min(real, default=0.0), max(real, default=0.0) - min(real, default=0.0)
    return [
        _OUT if not math.isfinite(value) else (value - low) / spread if spread else 0.0
        for value in values
    ]


def _checked(method: BaseMethod) -> BaseMethod:
    usable = isinstance(method, BaseMethod) and isinstance(method, Optimizes)
    if usable and not isinstance(method, Asks):
        return method
    raise SettingError(
        f"HILTTA: method must be a method object that trains without labels, such as Tent(model), "
        f"got {type(method).__name__}. In an experiment file it is the table [method.method]."
    )


def _combinations(
    method: BaseMethod, given: Mapping[str, Sequence[Any]] | None
) -> list[dict[str, Any]]:
    """Return every combination of the given values."""
    assert isinstance(method, Optimizes), "checked when it was given"
    group = method.optimizer.param_groups[0]
    table = {"lr": [group["lr"] * factor for factor in FACTORS]} if given is None else dict(given)
    changeable = [
        name
        for name in inspect.signature(type(method)).parameters
        if name in group or (name != "model" and hasattr(method, name))
    ]
    for name, values in table.items():
        if name not in changeable:
            raise SettingError(
                f"HILTTA: candidates of {type(method).__name__} can be for "
                f"{', '.join(changeable)}, got {name!r}."
            )
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise SettingError(f"HILTTA: candidates.{name} must be a list, got {values!r}.")
    return [dict(zip(table, values, strict=True)) for values in product(*table.values())]
