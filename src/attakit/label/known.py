"""KnownLabels: the oracle of benchmarks, which knows everything and answers at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attakit.errors import LabelError
from attakit.label.classes import class_index
from attakit.label.packing import check_state, pack_queries, unpack_queries
from attakit.queries import Answer, Query, SampleId


class KnownLabels:
    """Answers from a mapping of sample names to class indices, on the next collect.

    A yes/no question gets yes or no.

    Parameters
    ----------
    labels
        Class index of every sample that may be asked about. It is read, not copied.
    annotator
        Name that signs the answers.

    Examples
    --------
    >>> oracle = KnownLabels({SampleId("cat.png"): 1})
    >>> oracle.ask([Query(SampleId("cat.png"), step=0)])
    >>> oracle.pending
    1
    >>> [answer.label for answer in oracle.collect()]
    [1]
    """

    def __init__(self, labels: Mapping[SampleId, int], *, annotator: str = "known") -> None:
        self.labels = labels
        self.annotator = annotator
        self._open: list[Query] = []

    @property
    def pending(self) -> int:
        """Number of questions whose answer has not been collected."""
        return len(self._open)

    def ask(self, queries: Sequence[Query]) -> None:
        """Ask questions. If a sample has no label, raise `LabelError` and ask none."""
        for query in queries:
            self._label(query.sample)
        self._open.extend(queries)

    def collect(self) -> tuple[Answer, ...]:
        """Answer all questions since the last collect."""
        answers = [
            Answer.knowing(query, self._label(query.sample), self.annotator) for query in self._open
        ]
        self._open = []
        return tuple(answers)

    def state_dict(self) -> dict[str, Any]:
        return {"open": pack_queries(self._open)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("KnownLabels", state, ("open",))
        self._open = unpack_queries(state["open"])

    def _label(self, sample: SampleId) -> int:
        label = self.labels.get(sample)
        if label is None:
            raise LabelError(
                f"KnownLabels: sample {sample!r} has no label among the {len(self.labels)} known "
                "ones. Check that stream and labels use the same names."
            )
        index = class_index("KnownLabels", sample, label)
        assert index is not None  # a label that is not None gives an index or an error
        return index
