"""Comparable runs: one data set, one model, one kind of stream order.

Paired differences and the leaderboard are both computed from contests.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attakit.report.lineup import Entrant, RunReader, final, line_up
from attakit.report.runs import RunRecord, grouped
from attakit.report.streams import STREAM_NAMES, by_model, is_pool, order_of, setting, stream_name
from attakit.report.summaries import MeanStd
from attakit.report.tables import TableCell

_SECONDS = final("seconds")


@dataclass(frozen=True)
class Contest:
    """Runs on one data set, with one model and one kind of order. The orders themselves differ."""

    title: str
    runs: Sequence[RunRecord]  # finished runs of methods that apply
    inapplicable: Sequence[RunRecord]
    dropped: int  # number of unfinished runs

    @property
    def entrants(self) -> list[Entrant]:
        return line_up(self.runs)


def contests(runs: Sequence[RunRecord]) -> list[Contest]:
    """Group comparable runs; pool runs and contests without a run are excluded.

    >>> def run(order):
    ...     stream = {"name": "pacs", "order": order}
    ...     return RunRecord({"stream": stream}, {}, [], [], [], {"seconds": 1.0})
    >>> [one.title for one in contests([run("random"), run("domain_after_domain")])]
    ['pacs, domain-wise stream', 'pacs, random stream']
    """
    found: list[Contest] = []
    for one in by_model([run for run in runs if not is_pool(run)]):
        orders = grouped(one.runs, order_of)
        for order in sorted(orders, key=_rank):
            named = (one.data_set, one.model, f"{stream_name(order)} stream", one.description)
            found.append(_contest(", ".join(filter(None, named)), orders[order]))
    return [one for one in found if one.runs]


def confidence_interval(values: Sequence[float]) -> MeanStd | None:
    """Return the mean of values, and half of its 95 % confidence interval by Student's t.

    A single value has no interval, and no values have no mean.

    >>> confidence_interval([4.0, 5.0, 6.0])
    MeanStd(mean=5.0, deviation=2.484...)
    """
    if len(values) < 2:
        return MeanStd(values[0]) if values else None
    from scipy.special import stdtrit  # noqa: PLC0415, slow to import

    error = statistics.stdev(values) / math.sqrt(len(values))
    return MeanStd(statistics.fmean(values), float(stdtrit(len(values) - 1, 0.975)) * error)


def pairs(own: Entrant, other: Entrant, read: RunReader) -> list[tuple[float, float]]:
    """Pair a number of each run with that of the other entrant's matching run."""
    partners = {_pair(run): read(run) for run in other.all_runs}
    found = [(read(run), partners.get(_pair(run))) for run in own.all_runs]
    return [(mine, theirs) for mine, theirs in found if mine is not None and theirs is not None]


def times_source_only(own: Entrant, entrants: Sequence[Entrant]) -> TableCell:
    """Return seconds as a multiple of source-only inference, if that was run too."""
    plain = next((one for one in entrants if _method(one) == "source_only"), None)
    if plain is None:
        return TableCell()
    both = pairs(own, plain, _SECONDS)
    return TableCell(MeanStd.of(mine / theirs for mine, theirs in both if theirs))


def mean_figure(entrant: Entrant, name: str) -> MeanStd | None:
    """Average a number over all runs of an entrant."""
    return MeanStd.of(final(name)(run) for run in entrant.all_runs)


def _rank(order: str) -> int:
    """Sort domain-wise orders before random ones, then others as they come."""
    known = list(STREAM_NAMES)
    return known.index(order) if order in known else len(known)


def _contest(title: str, runs: Sequence[RunRecord]) -> Contest:
    return Contest(
        title,
        [run for run in runs if run.is_finished],
        [run for run in runs if run.inapplicable],
        sum(not run.is_finished and not run.inapplicable for run in runs),
    )


def _pair(run: RunRecord) -> tuple[Any, Any, Any]:
    """Return what two paired runs share: the order of samples, the weights, the seed."""
    return run.environment.get("stream"), run.environment.get("model"), run.seed


def _method(entrant: Entrant) -> str | None:
    name: str | None = setting(entrant.all_runs[0], "method", "name")
    return name
