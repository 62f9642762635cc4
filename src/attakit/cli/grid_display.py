"""Progress of a suite: one bar for the grid, one line per running cell."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from attakit.bench.suites.estimate import Estimate
from attakit.bench.suites.work import Event, Stepped


class GridDisplay:
    """Shows the progress of a suite on standard error.

    Parameters
    ----------
    title
        The suite's name.
    methods
        The method's name for each cell, by the cell's name.
    workers
        Number of cells that run at the same time.
    quiet
        Show nothing.

    Examples
    --------
    >>> with GridDisplay("pacs", {"random/tent-0": "Tent"}, workers=1, quiet=True) as display:
    ...     display.show(Stepped("random/tent-0", 1, 10))
    """

    def __init__(
        self, title: str, methods: Mapping[str, str], *, workers: int, quiet: bool = False
    ) -> None:
        self._estimate = Estimate(methods, workers=workers)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            disable=quiet,
            expand=True,
        )
        self._all = self._bars.add_task(escape(title), total=len(methods), note="")
        self._lines: dict[str, TaskID] = {}
        self._failed = 0

    def __enter__(self) -> GridDisplay:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def show(self, event: Event) -> None:
        """Update the bars after an event of the grid."""
        self._estimate.note(event)
        if isinstance(event, Stepped):
            self._step(event)
        else:
            line = self._lines.pop(event.cell, None)
            if line is not None:
                self._bars.remove_task(line)
            self._failed += event.outcome.result in ("failed", "lost")
            self._bars.advance(self._all)
        self._bars.update(self._all, note=self._note())

    def _step(self, event: Stepped) -> None:
        if event.cell not in self._lines:
            self._lines[event.cell] = self._bars.add_task(escape(f"  {event.cell}"), note="")
        self._bars.update(
            self._lines[event.cell],
            completed=event.done,
            total=event.total,
            note=escape(event.note),
        )

    def _note(self) -> str:
        left = self._estimate.left()
        failed = f"{self._failed} failed · " if self._failed else ""
        return f"{failed}{'' if left is None else f'{timedelta(seconds=round(left))} left'}"
