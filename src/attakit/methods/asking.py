"""What methods that ask for labels share: choosing, waiting for answers, and forgetting."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import ClassVar

from torch import nn

from attakit.methods.base import BaseMethod
from attakit.protocols import Asks, Selector
from attakit.queries import Allowance, Query, SampleId
from attakit.records import Batch, Choice, LabelledRows, Step
from attakit.select.allowed import select_allowed
from attakit.store.stored_rows import StoredRows, covered_rows
from attakit.store.waiting import Waiting, waiting_rows


class AskingMethod(BaseMethod, Asks):
    """Asks about samples that a selector chooses, within any allowance.

    A subclass overrides `learn`, which begins with `self.waiting.resolve(answers)`. It names
    `waiting` in `stateful`. It may override `adapt` to adapt without labels, and `respond` to
    choose among some samples of a batch only.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    selector
        Chooses which samples of a batch to ask about.
    """

    stateful: ClassVar[tuple[str, ...]] = ("model", "waiting")

    def __init__(self, model: nn.Module, *, selector: Selector) -> None:
        super().__init__(model)
        self.selector = selector
        self.waiting = Waiting()

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        """Answer and adapt, then ask about samples of the whole batch."""
        step = self.adapt(batch.inputs)
        rows = waiting_rows(batch, step.prediction)
        queries, choice = self.ask(rows, (self.waiting,), allowance)
        return replace(step, queries=queries, choice=choice)

    def ask(
        self, rows: LabelledRows, covered: Sequence[StoredRows], allowance: Allowance
    ) -> tuple[tuple[Query, ...], Choice]:
        """Choose among rows, and keep the chosen ones until their answers come.

        Parameters
        ----------
        rows
            The samples that may be asked about.
        covered
            What need not be asked about again. The selector may give new weights to it.
        allowance
            How many questions are allowed, and of which classes.
        """
        candidates = rows.unlabelled()
        known = covered_rows(covered, like=candidates)
        selection = select_allowed(self.selector, candidates, known, allowance, self.step_count)
        for store in covered:
            store.reweight(selection.weights)
        queries = self.waiting.hold_chosen(rows, selection, self.step_count)
        return queries, Choice(candidates, known, selection)

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove samples from everything in `stateful` that stores rows."""
        for name in self.stateful:
            part = getattr(self, name)
            if isinstance(part, StoredRows):
                part.forget(samples)
