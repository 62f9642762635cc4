"""Group runs into entrants, by method, budget and stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attakit.report.lines import as_json
from attakit.report.runs import RunRecord, grouped
from attakit.report.streams import (
    BUDGET_SETTING,
    STREAM_NAMES,
    describe_settings,
    distinguishing_settings,
    order_of,
    own_settings,
    setting,
    without_repeats,
)
from attakit.report.summaries import MeanStd, final_figures

RunReader = Callable[[RunRecord], float | None]


@dataclass(frozen=True)
class Entrant:
    """A method with one budget and one set of settings, and its runs on each stream order.

    Examples
    --------
    >>> run = RunRecord({"label": "tent"}, {}, [], [], [], {"labels": 0, "seconds": 2.0})
    >>> (entrant,) = line_up([run])
    >>> (order,) = entrant.runs
    >>> entrant.budget, entrant.figure(order, final("seconds"))
    (None, MeanStd(mean=2.0, deviation=None))
    """

    label: str
    budget: int | str | None  # None without any labels, because then the budget means nothing
    runs: Mapping[str, tuple[RunRecord, ...]]  # by stream order, one per seed
    left_out: int = 0  # runs that repeat another one's settings, seed and source model
    variant: str = ""  # how it differs from others with the same label and budget

    @property
    def full_label(self) -> str:
        """Name of the method, with settings if it was run with several."""
        return with_remark(self.label, self.variant)

    @property
    def all_runs(self) -> tuple[RunRecord, ...]:
        return tuple(run for runs in self.runs.values() for run in runs)

    def figure(self, order: str, read: RunReader) -> MeanStd | None:
        """Average a number of the runs on one stream over seeds."""
        return MeanStd.of(read(run) for run in self.runs.get(order, ()))


def with_remark(name: str, remark: str) -> str:
    """Return a name with a remark in brackets, if there is one."""
    return f"{name} ({remark})" if remark else name


def line_up(runs: Sequence[RunRecord]) -> list[Entrant]:
    """Group runs that differ in stream order and seed only."""
    entrants: list[Entrant] = []
    for label, own in grouped(runs, lambda run: run.label).items():
        if any(final_figures(run).get("labels") for run in own):
            budgets = grouped(own, budget_of)
            for budget in sorted(budgets, key=_by_size):
                entrants += _variants(label, budget, budgets[budget])
        else:
            entrants += _variants(label, None, own)
    return entrants


def _variants(label: str, budget: int | str | None, runs: Sequence[RunRecord]) -> list[Entrant]:
    """Make an entrant for each set of settings of a method, named by what differs."""
    ways = grouped(runs, lambda run: as_json(own_settings(run)))
    settings = [own_settings(own[0]) for own in ways.values()]
    names = distinguishing_settings(settings)
    return [
        _entrant(label, budget, own, ", ".join(describe_settings(each, names, "=")))
        for each, own in zip(settings, ways.values(), strict=True)
    ]


def _entrant(
    label: str, budget: int | str | None, runs: Sequence[RunRecord], variant: str
) -> Entrant:
    kept = without_repeats(runs)
    left_out = len(runs) - len(kept)
    if budget is None:
        # A method that never asks may have been run at several budgets. That is not a repeat.
        kept = without_repeats(kept, ignoring=BUDGET_SETTING)
    by_order = {order: tuple(own) for order, own in grouped(kept, order_of).items()}
    return Entrant(label, budget, by_order, left_out, variant)


def _by_size(budget: int | str | None) -> tuple[bool, int]:
    return not isinstance(budget, int), budget if isinstance(budget, int) else 0


def several_budgets(entrants: Sequence[Entrant], label: str) -> bool:
    """True if a method occurs with more than one budget."""
    return len({entrant.budget for entrant in entrants if entrant.label == label}) > 1


def orders_of(entrants: Sequence[Entrant]) -> list[str]:
    """Return the orders of all streams: domain-wise, random, then others as they come."""
    found = dict.fromkeys(order for entrant in entrants for order in entrant.runs)
    known = [order for order in STREAM_NAMES if order in found]
    return [*known, *(order for order in found if order not in known)]


def budget_of(run: RunRecord) -> int | str | None:
    """Return how many labels a run was allowed."""
    budget: int | str | None = setting(run, "labels", "budget")
    return budget


def final(name: str, key: str | None = None) -> RunReader:
    """Return a reader for a final number of a run; with a key, of one domain or segment."""

    def read(run: RunRecord) -> float | None:
        found = final_figures(run).get(name)
        value: float | None = found if key is None else (found or {}).get(key)
        return value

    return read
