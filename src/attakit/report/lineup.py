"""Runs of a suite put in order: which belong to one method, budget and stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attakit.report.figures import Figure, final_figures
from attakit.report.paper import PaperTable
from attakit.report.runs import RunRecord

DOMAIN_WISE = "domain_after_domain"
# What the paper calls the orders of a stream.
STREAM_NAMES = {DOMAIN_WISE: "domain-wise", "random": "random"}

Read = Callable[[RunRecord], float | None]


@dataclass(frozen=True)
class Entrant:
    """A method with one budget, and its runs on each stream order.

    Parameters
    ----------
    label
        Name of the method.
    budget
        Labels it was allowed; None where it never received any, so that the budget says nothing.
    runs
        Its runs by the order of their stream, one per seed.
    left_out
        How many runs repeat another one's method, stream, budget and seed, and are not counted.

    Examples
    --------
    >>> run = RunRecord({"label": "tent"}, {}, [], [], [], {"labels": 0, "seconds": 2.0})
    >>> (entrant,) = line_up([run])
    >>> entrant.budget, entrant.figure(DOMAIN_WISE, lambda run: final_figures(run)["seconds"])
    (None, Figure(mean=2.0, deviation=None))
    """

    label: str
    budget: int | str | None
    runs: Mapping[str, tuple[RunRecord, ...]]
    left_out: int = 0

    @property
    def all_runs(self) -> tuple[RunRecord, ...]:
        return tuple(run for runs in self.runs.values() for run in runs)

    def figure(self, order: str, read: Read) -> Figure | None:
        """A number of the runs on one stream, averaged over seeds."""
        return Figure.of(read(run) for run in self.runs.get(order, ()))

    def name(self, table: PaperTable | None, *, tell_budget: bool) -> str:
        """What the paper calls it, or its own name, with its budget if that must be told."""
        known = table.row_name(self.label, self.budget) if table is not None else None
        if known is not None:
            return known
        return f"{self.label} (B ≤ {self.budget})" if tell_budget else self.label


def line_up(runs: Sequence[RunRecord]) -> list[Entrant]:
    """Put runs together that differ in stream order and seed only."""
    labels = list(dict.fromkeys(run.label for run in runs))
    entrants: list[Entrant] = []
    for label in labels:
        own = [run for run in runs if run.label == label]
        if any(final_figures(run).get("labels") for run in own):
            budgets = sorted(dict.fromkeys(budget_of(run) for run in own), key=_by_size)
            entrants += [_entrant(label, b, [r for r in own if budget_of(r) == b]) for b in budgets]
        else:
            entrants.append(_entrant(label, None, own))
    return entrants


def _entrant(label: str, budget: int | str | None, runs: Sequence[RunRecord]) -> Entrant:
    kept: dict[tuple[str, Any], RunRecord] = {}
    for run in runs:
        kept.setdefault((order_of(run), run.seed), run)
    orders = list(dict.fromkeys(order for order, _ in kept))
    by_order = {
        order: tuple(run for (own, _), run in kept.items() if own == order) for order in orders
    }
    # A method that never asks may have been run at several budgets: one run, not a repeated one.
    different = {(order_of(run), run.seed, budget_of(run)) for run in runs}
    return Entrant(label, budget, by_order, len(runs) - len(different))


def _by_size(budget: int | str | None) -> tuple[bool, int]:
    return not isinstance(budget, int), budget if isinstance(budget, int) else 0


def ranked(entrants: Sequence[Entrant], table: PaperTable | None) -> list[Entrant]:
    """In the order of the paper's rows; what the paper does not have comes after."""
    if table is None:
        return list(entrants)
    places = {name: place for place, name in enumerate(table.rows)}

    def place(entrant: Entrant) -> int:
        return places.get(table.row_name(entrant.label, entrant.budget) or "", len(places))

    return sorted(entrants, key=place)


def several_budgets(entrants: Sequence[Entrant], label: str) -> bool:
    """Whether a method is there with more than one budget."""
    return sum(entrant.label == label for entrant in entrants) > 1


def orders_of(entrants: Sequence[Entrant]) -> list[str]:
    """The orders of all streams: domain-wise, random, then others as they come."""
    found = dict.fromkeys(order for entrant in entrants for order in entrant.runs)
    known = [order for order in STREAM_NAMES if order in found]
    return [*known, *(order for order in found if order not in known)]


def stream_name(order: str) -> str:
    """What tables call an order of the stream."""
    return STREAM_NAMES.get(order, order.replace("_", " "))


def setting(run: RunRecord, table: str, name: str, default: Any = None) -> Any:
    """A setting of a run's experiment; the default where it does not say."""
    found = run.experiment.get(table)
    value = found.get(name) if isinstance(found, Mapping) else None
    return default if value is None else value


def order_of(run: RunRecord) -> str:
    """The order of a run's stream."""
    return str(setting(run, "stream", "order", DOMAIN_WISE))


def budget_of(run: RunRecord) -> int | str | None:
    """How many labels a run was allowed."""
    budget: int | str | None = setting(run, "labels", "budget")
    return budget


def data_set_of(run: RunRecord) -> str:
    """The data set of a run."""
    return str(setting(run, "stream", "name", "stream"))
