"""Progress of a suite: one bar for the grid, one line per running cell."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from attakit.bench.suites.work import BETWEEN_STEPS, CellEvent, CellProgress

_PERIOD = 1e9  # seconds: the speed of the whole suite counts, since cells differ


class GridDisplay:
    """Shows the progress of a suite and the time left, on standard error.

    Examples
    --------
    >>> with GridDisplay("pacs", 12, quiet=True) as display:
    ...     display.show(CellProgress("random/tent-0", 1, 10))
    """

    def __init__(self, title: str, cells: int, *, quiet: bool = False) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=quiet,
            expand=True,
            speed_estimate_period=_PERIOD,
        )
        self._all = self._bars.add_task(escape(title), total=cells, note="")
        self._lines: dict[str, TaskID] = {}
        self._shares: dict[str, float] = {}  # progress of each running cell
        self._ended = 0
        self._failed = 0

    def __enter__(self) -> GridDisplay:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def show(self, event: CellEvent) -> None:
        """Update the bars after an event of the grid."""
        if isinstance(event, CellProgress):
            self._step(event)
        else:
            self._end(event.cell, failed=event.outcome.result in ("failed", "lost"))
        completed = self._ended + sum(self._shares.values())
        note = f"{self._failed} failed" if self._failed else ""
        self._bars.update(self._all, completed=completed, note=note)

    def _step(self, event: CellProgress) -> None:
        if event.cell not in self._lines:
            self._lines[event.cell] = self._bars.add_task(escape(f"  {event.cell}"), note="")
        if event.note not in BETWEEN_STEPS and event.total:
            self._shares[event.cell] = event.done / event.total
        self._bars.update(
            self._lines[event.cell],
            completed=event.done,
            total=event.total,
            note=escape(event.note),
        )

    def _end(self, cell: str, *, failed: bool) -> None:
        self._ended += 1
        self._failed += failed
        self._shares.pop(cell, None)
        line = self._lines.pop(cell, None)
        if line is not None:
            self._bars.remove_task(line)
        else:
            # It was not run, so it says nothing about the time that is left.
            self._bars.reset(self._all, completed=self._ended)
