"""Enhanced TTA: any method, and labels of samples chosen at random.

Gui, Li and Ji, "Active Test-Time Adaptation: Theoretical Analyses and An Algorithm", ICLR 2024,
section 5.2 and the appendix on enhanced TTA: what labels alone do for a method that was made to
go without. https://openreview.net/forum?id=YHUGlwTzFB

Differs from the public code: the labels are counted, not drawn with a probability per sample, so
that methods can be compared at the same number of them; every method descends on them (the
public SAR only climbs, the public EATA skips them where no sample is reliable); answers may come
late; labelled samples can be kept and drawn again.

Labels get a gradient step of their own after the method's own step, where the public code adds
their loss to the loss of that step. So there is one more step of the same optimiser, which moves
its momentum too; around CoTTA, one more turn of the teacher and one more restoring of weights;
around EATA, no Fisher term on that step; around SAR, a plain step without an ascent.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext

from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from attakit.errors import SettingError, check_count, check_range
from attakit.methods.asking import AskingMethod, checked_question
from attakit.methods.base import BaseMethod
from attakit.methods.tent import Tent
from attakit.methods.windowed import WindowedMethod
from attakit.nn.norm import moving_statistics, uses_batch_statistics
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
    """Lets another method answer and adapt, asks about random samples, and trains it on them.

    The labelled samples are descended on with the method's own model and optimiser, by
    cross-entropy with weight 1. Where the model normalises with batch statistics, they pass
    through it in the company of the latest batch, without which one or two samples would be
    normalised by themselves. If the method inside has a window, the company fills it.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied. Only used where no `method` is given, since a method
        has its own copy.
    method
        The method inside; Tent with its defaults if not given.
    selector
        Chooses which samples of a batch to ask about; at random by default. Samples it knows
        already come with the features they had when they were asked about.
    rate
        How many labels to ask for; the budget spread over the stream by default.
    question
        What to ask: "class", or "yes_no" to ask whether the predicted class is right. A "no" is
        descended on as a class that is ruled out.
    keep
        Keep labelled samples and fill up every update with them to `batch_size`; otherwise each
        is used when its answer comes and then dropped, as in the paper.
    updates
        Updates on new labelled samples per turn; with `keep` also on turns without new ones.
    batch_size
        Most labelled samples in one update. More new ones are taken in several.
    trainable, lr, momentum
        What trains, and how, where the method inside brings no optimiser of its own.
    seed
        Of questions and draws.

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
        """What descends on labelled samples: the optimiser of the method inside, if it has one."""
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
        """What each update of a turn trains on: new samples, filled up with kept ones."""
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
        """Remember the latest batch, after what fills it up to the window of the method inside."""
        size = self.method.window.size if isinstance(self.method, WindowedMethod) else 0
        before, room = self.latest.hand_over(), size - len(rows)
        if before is not None and room > 0:
            self.latest.add(before.take(range(len(before))[-room:]))
        self.latest.add(rows)

    def _update(self, rows: LabelledRows) -> float:
        moves = self.model.norm == "running"
        with moving_statistics(self.model) if moves else nullcontext():
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
    """What the method trains already; if that is nothing, the parameters named."""
    found = [parameter for parameter in method.model.parameters() if parameter.requires_grad]
    return found or trainable_parameters(method.model, trainable)
