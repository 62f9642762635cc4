"""Accuracy on every domain at the end of each segment: the paper's complete results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attakit.bench.score import score_everything
from attakit.build.task import ProgressCallback, Task, no_progress
from attakit.protocols import Method
from attakit.queries import SampleId
from attakit.records import StepResult


class AfterSegment:
    """Scores a method on all domains whenever a segment of the stream has ended.

    What it finds is meant for the step lines of a run: `domains`, and for the source
    `source_accuracy` (held out) and `source_accuracy_whole` (as the paper measures it: trained on
    or not).

    Parameters
    ----------
    method
        The method, which is asked to predict and learns nothing.
    task
        The domains to score.
    segments
        The segment of every sample, in the order of the stream.

    Examples
    --------
    >>> import torch
    >>> from attakit.methods import SourceOnly
    >>> from attakit.stream import blobs
    >>> domains = blobs()
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Linear(4, 3))
    >>> check = AfterSegment(SourceOnly(model), Task(domains.classes, domains), {})
    >>> sorted(check.measure()["domains"]) == sorted(domains.parts)
    True
    """

    def __init__(self, method: Method, task: Task, segments: Mapping[SampleId, str]) -> None:
        self._method = method
        self._task = task
        # A later sample of a segment replaces an earlier one, so its last stays.
        self._last = frozenset({name: sample for sample, name in segments.items()}.values())

    def __call__(self, result: StepResult) -> dict[str, Any]:
        """What to add to the line of a step: nothing within a segment."""
        return {} if self._last.isdisjoint(result.batch.samples) else self.measure()

    def measure(self, scoring: ProgressCallback = no_progress) -> dict[str, Any]:
        """Score all domains now."""
        scores = score_everything(self._method, self._task, scoring)
        return {"domains": scores.per_domain(), **scores.source()}
