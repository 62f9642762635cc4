"""Waiting: samples asked about and not yet answered, and those of none of the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attakit.queries import Answer, Query, SampleId
from attakit.records import UNKNOWN, Batch, LabelledRows, Prediction, Selection
from attakit.store.stored_rows import StoredRows
from attakit.targets import Targets

_MOST_OUTSIDE = 100  # samples of none of the classes; older ones make room


class Waiting(StoredRows):
    """Stores the inputs of samples in question until their answer, skip or expiry.

    A waiting sample counts as covered. Otherwise a slow annotator would be asked about the same
    cluster again and again. So does a sample that is of none of the classes, long after its answer.
    No classifier can learn from it, but a selector need not spend labels on others like it.

    Examples
    --------
    >>> row = torch.zeros(1, 2)
    >>> asked = LabelledRows(("tabby",), row, torch.tensor([UNKNOWN]), row, row, torch.ones(1))
    >>> waiting = Waiting()
    >>> (query,) = waiting.hold(asked, step=0)
    >>> waiting.resolve([Answer(query, label=1, annotator="me")]).labels
    tensor([1])
    >>> len(waiting)
    0
    """

    def __init__(self) -> None:
        super().__init__()
        self._queries: list[Query | None] = []  # None: answered, of none of the classes

    @property
    def open_samples(self) -> set[SampleId]:
        """The samples whose questions are open."""
        pairs = zip(self.rows.samples, self._queries, strict=True) if len(self) else ()
        return {sample for sample, query in pairs if query is not None}

    @property
    def outside(self) -> int:
        """How many samples are kept because they are of none of the classes."""
        return self._queries.count(None)

    def hold(
        self, rows: LabelledRows, step: int, proposals: Mapping[SampleId, int] | None = None
    ) -> tuple[Query, ...]:
        """Store samples that are about to be asked about, and return the questions.

        With proposals, these are yes/no questions about the proposed classes.
        """
        proposals = proposals or {}
        queries = tuple(Query(sample, step, proposals.get(sample)) for sample in rows.samples)
        if queries:
            self._rows = rows if self._rows is None else self._rows.join(rows)
            self._queries += queries
        return queries

    def hold_chosen(
        self,
        rows: LabelledRows,
        selection: Selection,
        step: int,
        proposals: Mapping[SampleId, int] | None = None,
    ) -> tuple[Query, ...]:
        """Store the rows that a selector chose, with its weights."""
        places = {sample: place for place, sample in enumerate(rows.samples)}
        chosen = rows.take([places[sample] for sample in selection.samples])
        return self.hold(chosen.reweighted(selection.weights), step, proposals)

    def resolve(self, answers: Sequence[Answer]) -> LabelledRows | None:
        """Remove and return what was answered. Skipped and unknown samples are dropped.

        Rows have `targets` if an answer is more than a label. A sample that is of none of the
        classes is not among them.
        """
        given: dict[Query | None, Answer] = {answer.query: answer for answer in answers}
        if self._rows is None or given.keys().isdisjoint(self._queries):
            return None
        classes = self._rows.logits.shape[1]
        useful = [
            (place, given[query])
            for place, query in enumerate(self._queries)
            if query in given and given[query].teaches(classes)
        ]
        rows = self._rows.take([place for place, _ in useful])
        self._queries = [
            None if query in given and given[query].is_outside(classes) else query
            for query in self._queries
        ]
        self._keep([place for place in range(len(self)) if self._queries[place] not in given])
        self._keep_newest_outside()
        return _with_answers(rows, [answer for _, answer in useful])

    def _keep_newest_outside(self) -> None:
        outside = [place for place, query in enumerate(self._queries) if query is None]
        gone = set(outside[:-_MOST_OUTSIDE])
        if gone:
            self._keep([place for place in range(len(self)) if place not in gone])

    def _keep(self, places: list[int]) -> None:
        super()._keep(places)
        self._queries = [self._queries[place] for place in places]

    def state_dict(self) -> dict[str, Any]:
        return {
            "queries": [None if query is None else query.packed() for query in self._queries],
            "rows": None if self._rows is None else self._rows.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._queries = [
            None if packed is None else Query.unpacked(packed) for packed in state["queries"]
        ]
        self._rows = LabelledRows.from_state(state["rows"])


def _with_answers(rows: LabelledRows, answers: Sequence[Answer]) -> LabelledRows:
    labels = [UNKNOWN if answer.label is None else answer.label for answer in answers]
    targets = None
    if not all(answer.is_plain for answer in answers):
        targets = Targets.of_answers(answers, rows.logits.shape[1]).to(rows.logits)
    return replace(rows, labels=rows.labels.new_tensor(labels), targets=targets)


def waiting_rows(
    batch: Batch, prediction: Prediction, activations: Tensor | None = None
) -> LabelledRows:
    """Return the samples of a batch, each with weight 1 and an unknown label.

    Examples
    --------
    >>> import torch
    >>> batch = Batch(0, ("tabby",), torch.zeros(1, 2))
    >>> waiting_rows(batch, Prediction(torch.zeros(1, 3), torch.zeros(1, 2))).labels
    tensor([-1])
    """
    unknown = torch.full((len(batch),), UNKNOWN, device=batch.inputs.device)
    weights = torch.ones(len(batch), device=batch.inputs.device)
    return LabelledRows(
        batch.samples,
        batch.inputs,
        unknown,
        prediction.features,
        prediction.logits,
        weights,
        activations,
    )
