"""BiTTA: reward right predictions, penalise wrong ones, and use agreement for the rest.

Lee et al., "Test-Time Adaptation with Binary Feedback", ICML 2025, section 3.
https://arxiv.org/abs/2505.18514

Written from the paper, and compared with the authors' code (`tests/methods/reference`).
Deliberate differences:

- The paper rewards and penalises log p, but a penalty on a logarithm has no lower bound: on the
  embedded digits the network collapses. The authors' code uses the probabilities as logits, so
  that both ends are bounded. That is the default here; `objective="log"` is the formula.
- The paper drops features after the four stages of a ResNet, only while it adapts. Here it is
  after every block. A model with its own dropout layers uses those, at their own rates.
- The update waits for the answers to its batch. If they do not arrive by the next batch, the model
  adapts without them, after it has answered that batch. A late answer joins the next update.
- With `objective="log"` a probability below a millionth is not pushed down any further.
- Weights are never restored to those of the source, as on most of the paper's data sets.
- An answer with a class is a reward for that class, so that questions about the class work as well.
  Candidate sets, soft answers, several excluded classes and weights of answers are not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD

from attakit.errors import check_choice, check_count, check_range
from attakit.methods.asking import AskingMethod
from attakit.nn.dropout import Dropping
from attakit.nn.norm import moving_statistics
from attakit.nn.seeding import seeded
from attakit.nn.trainable import trainable_parameters
from attakit.queries import Allowance, Answer, QuestionKind, SampleId
from attakit.records import UNKNOWN, Batch, LabelledRows, Rows, Selection, Step, Training
from attakit.select.askable import askable, selection_of
from attakit.select.label_rate import LabelRate
from attakit.store.anchors import Anchors
from attakit.store.latest import Latest
from attakit.store.waiting import waiting_rows
from attakit.train.descent import descend

Objective = Literal["bounded", "log"]
_SMALLEST = 1e-6


class BiTTA(AskingMethod):
    """Asks whether predictions are right if dropout makes them unsure, and learns from both.

    The cross-entropy of right answers goes down, and that of wrong ones goes up. That of other
    samples goes down if their answer stays the same under dropout. All use mean probabilities over
    some passes with dropout, with statistics of the training samples.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Settings of SGD with Nesterov momentum. The paper has 1e-3 on PACS, 1e-4 on CIFAR-10-C.
    epochs
        Updates per batch.
    dropout
        Share of features that are dropped after every block, for a model without dropout layers.
        Without blocks it is before the last layer. Other models keep their own rates.
    passes
        Passes with dropout.
    memory
        Samples stored of each kind, right and wrong. The oldest are removed first.
    norm_momentum
        Share of a batch in the running statistics of batch-norm layers.
    trainable
        The parameters to train: "all", "norm", "head" or "last:N".
    rate
        How many questions to ask; three per batch by default.
    question
        What to ask: "yes_no", or "class" to ask for the class instead.
    objective
        "bounded" uses probabilities as logits, like the authors' code; "log" uses their logarithm,
        as in the paper.
    seed
        Seed of dropout.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = BiTTA(tiny_classifier())
    >>> [query.kind for query in method.step(tiny_batch(), Allowance(2)).queries]
    ['yes_no', 'yes_no']
    """

    stateful = (
        "model",
        "optimizer",
        "waiting",
        "rate",
        "latest",
        "right",
        "wrong",
        "learn_count",
    )
    learns_soft: ClassVar[bool] = False

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 1e-4,
        momentum: float = 0.9,
        epochs: int = 3,
        dropout: float = 0.3,
        passes: int = 4,
        memory: int = 64,
        norm_momentum: float = 0.3,
        trainable: str = "all",
        rate: LabelRate | None = None,
        question: QuestionKind = "yes_no",
        objective: Objective = "bounded",
        seed: int = 0,
    ) -> None:
        check_range("BiTTA", "lr", lr, above=0)
        check_range("BiTTA", "momentum", momentum, above=0, at_most=1)
        check_count("BiTTA", "epochs", epochs)
        check_range("BiTTA", "dropout", dropout, above=0, at_most=0.99)
        check_count("BiTTA", "passes", passes)
        check_count("BiTTA", "memory", memory)
        check_range("BiTTA", "norm_momentum", norm_momentum, at_least=0, at_most=1)
        check_choice("BiTTA", "objective", objective, get_args(Objective))
        pace = LabelRate(per_batch=3, first=0, at_drift=0) if rate is None else rate
        super().__init__(model, selector=LeastSure({}), rate=pace, question=question)
        trained = trainable_parameters(self.model, trainable)
        self.optimizer = SGD(trained, lr=lr, momentum=momentum, nesterov=True)
        self.epochs = epochs
        self.objective = objective
        self.dropping = Dropping(self.model, dropout)
        self.passes = passes
        self.memory = memory
        self.norm_momentum = norm_momentum
        self.seed = seed
        self.latest = Latest()
        self.right = Anchors()
        self.wrong = Anchors()  # with the wrong class instead of a label
        self.learn_count = 0

    @property
    def labelled_anchors(self) -> Anchors:
        return self.right

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        prediction = self.answer(self.model, batch.inputs)
        if self.latest.due:  # the answers to the previous batch did not arrive in time
            self._update()
        self._move_statistics(batch.inputs)
        rows = waiting_rows(batch, self.answer(self.model, batch.inputs))
        self.latest.hold(rows)
        with torch.no_grad():
            sure = self._chances(batch.inputs, f"ask/{batch.step}")
        own = sure.gather(1, rows.logits.argmax(dim=1, keepdim=True)).flatten().tolist()
        self.selector = LeastSure(dict(zip(rows.samples, own, strict=True)))
        covered = (self.right, self.wrong, self.waiting)
        queries, choice = self.ask(rows, covered, self.due(batch, allowance))
        return Step(prediction, queries, {"sureness": sum(own) / len(own)}, choice)

    def learn(self, answers: Sequence[Answer]) -> Training:
        fresh = self.waiting.resolve(answers)
        if fresh is not None and len(fresh):
            self._remember(fresh)
            return self._update()
        may_come = self.latest.waits_for(self.waiting)
        return self._update() if self.latest.due and not may_come else Training()

    def _remember(self, fresh: LabelledRows) -> None:
        """Store samples whose prediction was right, or wrong, with the class asked about."""
        excluded = fresh.as_targets().shares == 0
        known = fresh.labels != UNKNOWN
        ruled_out = ~known & fresh.as_targets().open & (excluded.sum(dim=1) == 1)
        wrong = replace(fresh, labels=excluded.int().argmax(dim=1), targets=None)
        right = replace(fresh, targets=None)
        for store, rows, which in ((self.right, right, known), (self.wrong, wrong, ruled_out)):
            store.add(rows.take(which.nonzero().flatten().tolist()))
            if len(store) > self.memory:
                store.forget(store.rows.samples[: -self.memory])

    def _update(self) -> Training:
        """Take gradient steps on right, wrong and agreeing samples."""
        kinds = {
            "right_loss": self.right.rows if len(self.right) else None,
            "wrong_loss": self.wrong.rows if len(self.wrong) else None,
            "agreement_loss": self._unasked() if self.latest.due else None,
        }
        parts = {name: rows for name, rows in kinds.items() if rows is not None and len(rows)}
        self.latest.adapted()
        self.learn_count += 1
        if not parts:
            return Training()
        losses, updates = dict[str, Tensor](), 0
        for epoch in range(self.epochs):
            losses = self._losses(parts, f"{self.learn_count}/{epoch}")
            if losses:  # otherwise there is no answer and no agreeing sample
                descend("BiTTA", self.optimizer, torch.stack(list(losses.values())).sum())
                updates += 1
        return Training(updates, {name: loss.item() for name, loss in losses.items()})

    def _losses(self, parts: Mapping[str, LabelledRows], purpose: str) -> dict[str, Tensor]:
        inputs = torch.cat([rows.inputs for rows in parts.values()])
        sizes = [len(rows) for rows in parts.values()]
        chances = self._chances(inputs, purpose)
        with torch.no_grad(), moving_statistics(self.model, momentum=0):
            plain = self.model(inputs).logits.argmax(dim=1)
        found = {}
        split = torch.split(chances, sizes), torch.split(plain, sizes)
        pieces = zip(parts.items(), *split, strict=True)
        for (name, rows), piece, own in pieces:
            if name == "agreement_loss":
                same = piece.argmax(dim=1) == own
                if same.any():
                    found[name] = self._cross_entropy(piece[same], own[same])
            else:
                loss = self._cross_entropy(piece, rows.labels)
                found[name] = -loss if name == "wrong_loss" else loss
        return found

    def _cross_entropy(self, chances: Tensor, labels: Tensor) -> Tensor:
        if self.objective == "log":
            return F.nll_loss(chances.clamp(min=_SMALLEST).log(), labels)
        return F.cross_entropy(chances, labels)

    def _unasked(self) -> LabelledRows:
        """Return the samples of the latest batch that were not asked about."""
        stores = (self.right, self.wrong, self.waiting)
        asked = {name for store in stores if len(store) for name in store.rows.samples}
        rows = self.latest.rows
        return rows.take([at for at, name in enumerate(rows.samples) if name not in asked])

    def _chances(self, inputs: Tensor, purpose: str) -> Tensor:
        """Return mean probabilities over passes with dropout, with statistics of the inputs."""
        drawn = seeded(self.seed, "dropout", purpose, device=self.model.device)
        with drawn, self.dropping.on(), moving_statistics(self.model, momentum=0):
            passes = [self.model(inputs).logits.softmax(dim=1) for _ in range(self.passes)]
        return torch.stack(passes).mean(dim=0)

    def _move_statistics(self, inputs: Tensor) -> None:
        if len(inputs) > 1 and self.norm_momentum > 0:  # one sample has no spread
            with torch.no_grad(), moving_statistics(self.model, momentum=self.norm_momentum):
                self.model(inputs)


class LeastSure:
    """Asks about the samples with the lowest probability of their own prediction.

    Parameters
    ----------
    sureness
        The probability of each sample's prediction.

    Examples
    --------
    >>> rows = Rows(("a", "b"), torch.zeros(2, 1), torch.zeros(2, 2), torch.ones(2))
    >>> LeastSure({"a": 0.9, "b": 0.4}).select(rows, rows.take([]), 1, 0).samples
    ('b',)
    """

    def __init__(self, sureness: Mapping[SampleId, float]) -> None:
        self.sureness = sureness

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, the least sure first."""
        del step
        order = sorted(
            askable(candidates, known), key=lambda at: self.sureness[candidates.samples[at]]
        )
        return selection_of(candidates, order[: max(limit, 0)])
