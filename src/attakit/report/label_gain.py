"""One sentence on the gain of labels: accuracy with labels, without, and with random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attakit.report.runs import Group, RunRecord, group_runs
from attakit.report.streams import is_pool
from attakit.report.summaries import MethodSummary, summarise

_MOST_LOSERS = 3


def label_gain(runs: Sequence[RunRecord], subject: str | None = None) -> str:
    """Compare the best method with labels, the best without, and random labels, on one stream.

    Random labels mean the same method with a uniform selector, if it was run. Missing parts are
    skipped. The result is empty if there is nothing to compare.

    Parameters
    ----------
    runs
        Runs on the same stream.
    subject
        Label of the method with labels to describe; by default the best one.

    Examples
    --------
    >>> def run(label, accuracy, labels):
    ...     end = {"stream_accuracy": accuracy, "labels": labels}
    ...     return RunRecord({"label": label}, {}, [], [], [], end)
    >>> print(label_gain([run("simatta", 80.0, 150), run("batch norm", 71.0, 0)]))
    With 150 labels simatta is at 80.0 %; without labels batch norm is at 71.0 %. The labels gain
    9.0 points.
    """
    streams = [run for run in runs if not is_pool(run) and not run.inapplicable]
    found = [
        (group, summary)
        for group, summary in zip(group_runs(streams), summarise(streams), strict=True)
        if summary.stream is not None
    ]
    free = _best([one for _, one in found if not _labels(one)])
    names = {one.label: _method(group).get("name") for group, one in found}
    random = [one for group, one in found if _labels(one) and _is_random(group)]
    chosen = [one for group, one in found if _labels(one) and not _is_random(group)]
    own = _best([one for one in chosen if one.label == subject] or chosen)
    if own is None:
        return ""
    control = min(
        random,
        key=lambda one: (names[one.label] != names[own.label], abs(_labels(one) - _labels(own))),
        default=None,
    )
    if free is None and control is None:
        return ""
    below = [one for one in (*chosen, *random) if one is not own and one is not control]
    return _sentence(own, free, control) + _losers(below, free) + _advice(found, free)


def _advice(found: Sequence[tuple[Group, MethodSummary]], free: MethodSummary | None) -> str:
    """Suggest other statistics to methods with labels that keep the source's and lose by it."""
    frozen = [
        one.label
        for group, one in found
        if free is not None and _labels(one) and _accuracy(one) < _accuracy(free)
        if _method(group).get("norm") == "frozen"
    ]
    return f' Try norm = "blended" for {", ".join(frozen)}.' if frozen else ""


def _losers(others: Sequence[MethodSummary], free: MethodSummary | None) -> str:
    """Name the other methods with labels that are worse than the best one without."""
    if free is None:
        return ""
    worse = [one for one in others if round(_accuracy(one), 1) < round(_accuracy(free), 1)]
    return "".join(
        f" {one.label} is at {_accuracy(one):.1f} % with {_labels(one):,.0f} labels, below "
        f"{free.label} without any."
        for one in worse[:_MOST_LOSERS]
    )


def _sentence(own: MethodSummary, free: MethodSummary | None, control: MethodSummary | None) -> str:
    parts = [f"With {_cost(own)} {own.label} is at {_accuracy(own):.1f} %"]
    verdicts = []
    if free is not None:
        parts.append(f"without labels {free.label} is at {_accuracy(free):.1f} %")
        gain = round(_accuracy(own), 1) - round(_accuracy(free), 1)
        if gain > 0:
            verdicts.append(f" The labels gain {gain:.1f} points.")
        elif gain < 0:
            verdicts.append(
                f" The labels gain nothing: without them it is {-gain:.1f} points better."
            )
        else:
            verdicts.append(" The labels gain nothing.")
    if control is not None:
        parts.append(f"{_count(own, control)} at {_accuracy(control):.1f} %")
        loss = round(_accuracy(control), 1) - round(_accuracy(own), 1)
        if loss > 0:
            verdicts.append(f" Choosing at random is {loss:.1f} points better.")
    return "; ".join(parts) + "." + "".join(verdicts)


def _cost(summary: MethodSummary) -> str:
    if summary.cost is None:
        return f"{_labels(summary):,.0f} labels"
    return f"{_labels(summary):,.0f} answers at the cost of {summary.cost.mean:,.1f} labels"


def _count(own: MethodSummary, control: MethodSummary) -> str:
    """Describe random labels, with their number if it differs."""
    same = round(_labels(own)) == round(_labels(control))
    return "random labels are" if same else f"{_labels(control):,.0f} random labels are"


def _best(summaries: Sequence[MethodSummary]) -> MethodSummary | None:
    return max(summaries, key=_accuracy, default=None)


def _labels(summary: MethodSummary) -> float:
    return 0.0 if summary.labels is None else summary.labels.mean


def _accuracy(summary: MethodSummary) -> float:
    return 0.0 if summary.stream is None else summary.stream.mean


def _is_random(group: Group) -> bool:
    """True if a method asks about random samples: its selector is uniform."""
    method = _method(group)
    selector = method.get("selector")
    if selector is None:
        return method.get("name") == "enhanced"  # its default is uniform
    return (selector.get("name") if isinstance(selector, Mapping) else selector) == "uniform"


def _method(group: Group) -> Mapping[str, Any]:
    method = group.runs[0].experiment.get("method")
    return method if isinstance(method, Mapping) else {}
