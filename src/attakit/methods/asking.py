"""The base of methods that ask for labels: pace, choice, waiting for answers, forgetting."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, get_args

from torch import nn

from attakit.errors import check_choice
from attakit.methods.base import BaseMethod
from attakit.protocols import Asks, Selector, SetsPace
from attakit.queries import Allowance, Query, QuestionKind, SampleId
from attakit.records import Batch, Choice, LabelledRows, Rows, Selection, Step
from attakit.select.allowed import select_allowed
from attakit.select.label_rate import LabelRate
from attakit.store.stored_rows import StoredRows, covered_rows
from attakit.store.waiting import Waiting, waiting_rows


class AskingMethod(BaseMethod, Asks):
    """Asks about samples that a selector chooses, within any allowance.

    A subclass overrides `learn`, which begins with `self.waiting.resolve(answers)`. The returned
    rows have `targets` if people said more than a class. `answer_loss` trains on any rows; a method
    that can only use classes takes `rows.only_labelled()`. The subclass lists `waiting` and `rate`
    in `stateful`. It may override `adapt` to adapt without labels, and `respond` to choose among
    some samples of a batch only. Its `respond` calls `due`, then `ask`.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    selector
        Chooses which samples of a batch to ask about.
    rate
        The label rate; it is copied. By default the budget is spread over the stream, or 30 labels
        are asked for per 1,000 samples if its length is unknown.
    question
        What to ask: "class", or "yes_no" to ask whether the predicted class is right.
    """

    stateful: ClassVar[tuple[str, ...]] = ("model", "waiting", "rate")
    # True if `learn` uses chances of classes; else it gets the likeliest class with a weight.
    learns_soft: ClassVar[bool] = True
    question: QuestionKind = "class"

    def __init__(
        self,
        model: nn.Module,
        *,
        selector: Selector,
        rate: LabelRate | None = None,
        question: QuestionKind = "class",
    ) -> None:
        super().__init__(model)
        self.selector = selector
        self.question = checked_question(type(self).__name__, question)
        self.rate = LabelRate() if rate is None else copy.copy(rate)
        self.waiting = Waiting()

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        """Answer and adapt, then ask about samples of the whole batch."""
        step = self.adapt(batch.inputs)
        rows = waiting_rows(batch, step.prediction)
        queries, choice = self.ask(rows, (self.waiting,), self.due(batch, allowance))
        return replace(step, queries=queries, choice=choice)

    def due(self, batch: Batch, allowance: Allowance, *, drifted: bool = False) -> Allowance:
        """Count a batch, and reduce the allowance to the labels that are due.

        Parameters
        ----------
        batch
            The whole batch, even if only some of its samples may be asked about.
        allowance
            What the budget allows.
        drifted
            True if a new domain begins with the batch.
        """
        allowance = allowance.of(self.question)
        count = self.rate.due(len(batch), allowance, drifted=drifted)
        if isinstance(self.selector, SetsPace) and self.selector.sets_pace:
            return allowance
        return replace(allowance, due=count)

    def ask(
        self, rows: LabelledRows, covered: Sequence[StoredRows], allowance: Allowance
    ) -> tuple[tuple[Query, ...], Choice]:
        """Choose among rows, and store the chosen ones until their answers arrive.

        Parameters
        ----------
        rows
            The samples that may be asked about.
        covered
            What need not be asked about again. The selector may change its weights.
        allowance
            How many questions are due and allowed, and for which classes.
        """
        candidates = rows.unlabelled()
        known = covered_rows(covered, like=candidates)
        selection = self.select(candidates, known, allowance)
        for store in covered:
            store.reweight(selection.weights)
        proposals = self.proposals(candidates, allowance)
        queries = self.waiting.hold_chosen(rows, selection, self.step_count, proposals)
        return queries, Choice(candidates, known, selection)

    def proposals(self, candidates: Rows, allowance: Allowance) -> dict[SampleId, int]:
        """Return the class to propose for each sample, the predicted one; empty for no proposals.

        In a replay it is the class that was proposed before. People saw that question, and their
        answer must not be read as an answer to another one.
        """
        if isinstance(allowance.repeat, Mapping):
            past = allowance.repeat.items()
            return {sample: kind for sample, kind in past if kind is not None}
        if self.question == "class":
            return {}
        return dict(zip(candidates.samples, candidates.logits.argmax(dim=1).tolist(), strict=True))

    def select(self, candidates: Rows, known: Rows, allowance: Allowance) -> Selection:
        """Let the selector choose, and subtract its choice from what is due."""
        selection = select_allowed(self.selector, candidates, known, allowance, self.rate.step)
        self.rate.spend(len(selection.samples))
        return selection

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove samples from everything in `stateful` that stores rows."""
        for name in self.stateful:
            part = getattr(self, name)
            if isinstance(part, StoredRows):
                part.forget(samples)


def checked_question(who: str, question: QuestionKind) -> QuestionKind:
    """Check a kind of question; `SettingError` if it does not exist."""
    check_choice(who, "question", question, get_args(QuestionKind))
    return question
