"""How long a suite will take from here, judged by the cells that are done."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attakit.bench.suites.work import BESIDE, Ended, Event, Stepped


@dataclass
class _Running:
    since: float
    first: int  # steps done before this time
    share: float = 0.0  # of what was to do


class Estimate:
    """Time left, from the seconds that cells of the same method took.

    Parameters
    ----------
    methods
        Name of the method of each cell that is still to be done, by the cell's name.
    workers
        How many are done at once.
    clock
        Tells the time in seconds.

    Examples
    --------
    >>> from attakit.bench.suites.work import Outcome
    >>> now = iter([0.0, 10.0, 10.0])
    >>> estimate = Estimate({"a": "tent", "b": "tent"}, workers=1, clock=lambda: next(now))
    >>> estimate.note(Stepped("a", 0, 5))
    >>> estimate.note(Ended("a", Outcome("finished")))
    >>> estimate.left()
    10.0
    """

    def __init__(
        self,
        methods: Mapping[str, str],
        *,
        workers: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._methods = dict(methods)
        self._left = dict(methods)
        self._workers = workers
        self._clock = clock
        self._running: dict[str, _Running] = {}
        self._taken: dict[str, list[float]] = {}

    def note(self, event: Event) -> None:
        """Learn from what happened."""
        if isinstance(event, Stepped):
            self._step(event)
            return
        self._left.pop(event.cell, None)
        running = self._running.pop(event.cell, None)
        if running is not None and isinstance(event, Ended) and event.outcome.result == "finished":
            seconds = self._clock() - running.since
            # Of a cell that went on from its middle, only that part is known.
            self._taken.setdefault(self._methods[event.cell], []).append(seconds)

    def left(self) -> float | None:
        """Seconds until the last cell ends; None while nothing is known."""
        now = self._clock()
        known = [seconds for taken in self._taken.values() for seconds in taken]
        known += [
            (now - running.since) / running.share
            for running in self._running.values()
            if running.share
        ]
        if not known:
            return None
        usual = statistics.fmean(known)
        parts = [self._cell_left(cell, now, usual) for cell in self._left]
        return max(sum(parts) / self._workers, *parts) if parts else 0.0

    def _step(self, event: Stepped) -> None:
        if event.cell not in self._running:
            self._running[event.cell] = _Running(self._clock(), event.done)
        running = self._running[event.cell]
        if event.note not in BESIDE and event.total > running.first:
            running.share = (event.done - running.first) / (event.total - running.first)

    def _cell_left(self, cell: str, now: float, usual: float) -> float:
        taken = self._taken.get(self._methods[cell])
        running = self._running.get(cell)
        if running is None:
            return statistics.fmean(taken) if taken else usual
        spent = now - running.since
        if running.share:
            return spent / running.share - spent
        return max(0.0, (statistics.fmean(taken) if taken else usual) - spent)
