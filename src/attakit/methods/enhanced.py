"""Enhanced TTA: any method, plus labels of random samples.

Gui, Li and Ji, "Active Test-Time Adaptation: Theoretical Analyses and An Algorithm", ICLR 2024,
section 5.2 and the appendix on enhanced TTA: what labels alone do for a method without labels.
https://openreview.net/forum?id=YHUGlwTzFB

Differences from the public code: the labels are counted, not drawn with a probability per sample,
so that methods can be compared at the same number of labels. Every method trains on them (the
public SAR only ascends, the public EATA skips them if no sample is reliable). Answers may come
late. Labelled samples can be stored and drawn again.

Labels get their own gradient step after the method's step, while the public code adds their loss to
that step. So there is one more step of the same optimiser, which also updates its momentum. Around
CoTTA, the teacher is updated and weights are restored one more time. Around EATA that step has no
Fisher term, and around SAR no ascent.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence

from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from attakit.errors import SettingError, check_count, check_range
from attakit.methods.asking import AskingMethod, checked_question
from attakit.methods.base import BaseMethod
from attakit.methods.tent import Tent
from attakit.methods.windowed import WindowedMethod
from attakit.nn.norm import moving_statistics, uses_batch_statistics
from attakit.nn.steady import steady_statistics
from attakit.nn.trainable import trainable_parameters
from attakit.protocols import Forgets, Optimizes, Selector
from attakit.queries import Allowance, Answer, QuestionKind, SampleId
from attakit.randomness import generator
from attakit.records import Batch, LabelledRows, Prediction, Step, Training
from attakit.select.label_rate import LabelRate
from attakit.select.uniform import Uniform
from attakit.store.anchors import Anchors
from attakit.store.latest import in_company
from attakit.store.waiting import Waiting, waiting_rows
from attakit.train.answers import answer_loss
from attakit.train.descent import descend


class Enhanced(AskingMethod):
    """Lets another method answer and adapt, asks about random samples, and trains on them.

    The labelled samples train the method's own model with its optimiser, by cross-entropy with
    weight 1. If the model normalises with batch statistics, they pass through it together with the
    latest batch, because one or two samples alone have no useful statistics. If the method inside
    has a window, it is filled in the same way.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied. Used only without `method`, because a method has its own
        copy.
    method
        The method inside; by default Tent with its defaults.
    selector
        Chooses which samples of a batch to ask about; by default at random. Known samples have the
        features from the time of their question.
    rate
        The label rate; by default the budget is spread over the stream.
    question
        What to ask: "class", or "yes_no" to ask whether the predicted class is right. A "no" trains
        as an excluded class.
    keep
        Store labelled samples and fill up every update with them to `batch_size`. Otherwise each is
        used when its answer arrives and then dropped, as in the paper.
    updates
        Updates on new labelled samples per turn; with `keep` also in turns without new ones.
    batch_size
        Maximum number of labelled samples per update. More new ones take several updates.
    trainable, lr, momentum
        What trains, and how, if the method inside has no optimiser.
    seed
        Seed of questions and draws.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> model = tiny_classifier()
    >>> method = Enhanced(model, method=Tent(model, lr=0.01), keep=True)
    >>> len(method.step(tiny_batch(), Allowance(3)).queries)
    2
    """

    stateful = (
        "method",
        "own_optimizer",
        "waiting",
        "rate",
        "kept",
        "latest",
        "labelled",
        "learn_count",
    )

    def __init__(
        self,
        model: nn.Module,
        *,
        method: BaseMethod | None = None,
        selector: Selector | None = None,
        rate: LabelRate | None = None,
        question: QuestionKind = "class",
        keep: bool = False,
        updates: int = 1,
        batch_size: int = 16,
        trainable: str = "all",
        lr: float = 1e-3,
        momentum: float = 0.9,
        seed: int = 0,
    ) -> None:
        check_count("Enhanced", "updates", updates)
        check_count("Enhanced", "batch_size", batch_size)
        check_range("Enhanced", "lr", lr, above=0)
        check_range("Enhanced", "momentum", momentum, at_least=0, at_most=1)
        # Without super().__init__, which would copy the model again.
        self.method = _checked(method or Tent(model))
        self.model = self.method.model
        self.selector = selector or Uniform(seed=seed)
        self.rate = LabelRate() if rate is None else copy.copy(rate)
        self.question = checked_question("Enhanced", question)
        self.keep = keep
        self.updates = updates
        self.batch_size = batch_size
        self.seed = seed
        self.waiting = Waiting()
        self.kept = Anchors()
        self.latest = Anchors()
        self.labelled: list[SampleId] = []
        self.learn_count = 0
        self.own_optimizer: Optimizer | None = None
        if not isinstance(self.method, Optimizes):
            self.own_optimizer = SGD(_trained(self.method, trainable), lr=lr, momentum=momentum)

    @property
    def optimizer(self) -> Optimizer:
        """The optimiser for labelled samples: that of the method inside, if it has one."""
        if isinstance(self.method, Optimizes):
            return self.method.optimizer
        assert self.own_optimizer is not None, "made where the method inside has none"
        return self.own_optimizer

    @property
    def adapted_model(self) -> nn.Module:
        return self.method.adapted_model

    def predict(self, inputs: Tensor) -> Prediction:
        return self.method.predict(inputs)

    def after_update(self) -> None:
        self.method.after_update()

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        inside = self.method.step(batch, Allowance(0))
        rows = waiting_rows(batch, inside.prediction)
        if uses_batch_statistics(self.model):
            self._keep_company(rows)
        already = set(self.labelled)
        new = [place for place, sample in enumerate(rows.samples) if sample not in already]
        allowance = self.due(batch, allowance)
        queries, choice = self.ask(rows.take(new), (self.kept, self.waiting), allowance)
        return Step(inside.prediction, queries, inside.numbers, choice)

    def learn(self, answers: Sequence[Answer]) -> Training:
        inside = self.method.learn(())
        fresh = self.waiting.resolve(answers)
        losses = [self._update(rows) for rows in self._draws(fresh)]
        if fresh is not None:
            self.labelled = [*self.labelled, *fresh.samples]
            if self.keep:
                self.kept.add(fresh)
        self.learn_count += 1
        numbers = {**inside.numbers, "kept": float(len(self.kept))}
        if losses:
            numbers["labelled_loss"] = losses[-1]
        return Training(inside.updates + len(losses), numbers)

    def forget(self, samples: Collection[SampleId]) -> None:
        super().forget(samples)
        gone = set(samples)
        self.labelled = [name for name in self.labelled if name not in gone]
        if isinstance(self.method, Forgets):
            self.method.forget(samples)

    def _draws(self, fresh: LabelledRows | None) -> Iterator[LabelledRows]:
        """Yield the samples of each update of a turn: new ones, filled up with stored ones."""
        random = generator(self.seed, "labelled", self.learn_count)
        count = 0 if fresh is None else len(fresh)
        parts = [range(count)[at : at + self.batch_size] for at in range(0, count, self.batch_size)]
        for part in (parts or [range(0)]) * self.updates:
            old = random.permutation(len(self.kept))[: self.batch_size - len(part)].tolist()
            drawn = [] if fresh is None or not part else [fresh.take(part)]
            drawn += [self.kept.rows.take(old)] if old else []
            if drawn:
                yield drawn[0] if len(drawn) == 1 else drawn[0].join(drawn[1])

    def _keep_company(self, rows: LabelledRows) -> None:
        """Store the latest batch, after what fills it up to the window of the method inside."""
        size = self.method.window.size if isinstance(self.method, WindowedMethod) else 0
        before, room = self.latest.hand_over(), size - len(rows)
        if before is not None and room > 0:
            self.latest.add(before.take(range(len(before))[-room:]))
        self.latest.add(rows)

    def _update(self, rows: LabelledRows) -> float:
        moves = self.model.norm == "running"
        with moving_statistics(self.model) if moves else steady_statistics(self.model):
            logits = self.model(in_company(rows, self.latest)).logits[: len(rows)]
        loss = descend("Enhanced", self.optimizer, answer_loss(logits, rows))
        self.after_update()
        return loss


def _checked(method: BaseMethod) -> BaseMethod:
    if not isinstance(method, BaseMethod):
        raise SettingError(
            f"Enhanced: method must be a method object such as Tent(model), got {method!r}. In an "
            f"experiment file it is the table [method.method]."
        )
    return method


def _trained(method: BaseMethod, trainable: str) -> list[nn.Parameter]:
    """Return what the method already trains, or the named parameters."""
    found = [parameter for parameter in method.model.parameters() if parameter.requires_grad]
    return found or trainable_parameters(method.model, trainable)
