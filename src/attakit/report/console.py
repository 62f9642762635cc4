"""Terminal output of a run. The only module of this package that prints."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from attakit.errors import check_range
from attakit.records import StepResult
from attakit.report.accuracy import Accuracy
from attakit.report.tables import ResultTable
from attakit.report.terminal_tables import terminal_table

_LINE_SECONDS = 5.0


class WorkBar:
    """A progress bar for work that is counted in pieces.

    Examples
    --------
    >>> with WorkBar("pretrain", total=2, quiet=True) as bar:
    ...     bar.advance("half of it")
    """

    def __init__(
        self,
        title: str,
        *,
        total: int | None,
        done: int = 0,
        quiet: bool = False,
        console: Console | None = None,
    ) -> None:
        own = console or Console(stderr=True)
        # A pipe cannot redraw a bar, so it gets a line from time to time.
        self._lines = None if quiet or own.is_terminal else _Lines(own, title, total)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(compact=True),
            console=own,
            disable=quiet or not own.is_terminal,
            expand=True,
        )
        self._task = self._bar.add_task(escape(title), total=total, completed=done, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def advance(self, note: str = "") -> None:
        """Count one more finished piece."""
        self._bar.update(self._task, advance=1, note=escape(note))
        self._tell(note)

    def reach(self, done: int, note: str = "") -> None:
        """Set how many pieces are finished."""
        self._bar.update(self._task, completed=done, note=escape(note))
        self._tell(note)

    def _tell(self, note: str) -> None:
        if self._lines is not None:
            self._lines.tell(int(self._bar.tasks[0].completed), note)


class _Lines:
    """Progress as lines: at most one every few seconds, and one at the end."""

    def __init__(self, console: Console, title: str, total: int | None) -> None:
        self._console, self._title, self._total = console, title, total
        self._next = time.monotonic()

    def tell(self, done: int, note: str) -> None:
        now = time.monotonic()
        if now < self._next and done != self._total:
            return
        self._next = now + _LINE_SECONDS
        total = "" if self._total is None else f"/{self._total:,}"
        line = f"{self._title}: {done:,}{total} {note}".rstrip()
        self._console.print(escape(line), highlight=False, soft_wrap=True)


class Progress(WorkBar):
    """A progress bar with the accuracy so far, the labels received and the time left.

    Parameters
    ----------
    title
        Description of the work.
    steps
        Number of steps; None if the stream does not know it.
    accuracy
        Counts right answers. It may be shared with other reporters; None if no true classes are
        known.
    done
        Steps finished before, for a resumed run.
    quiet
        Show nothing.
    console
        Where to print; by default standard error, so that standard output is free for results.

    Examples
    --------
    >>> progress = Progress("tent", steps=35, quiet=True)
    >>> progress.close()
    """

    def __init__(
        self,
        title: str,
        *,
        steps: int | None,
        accuracy: Accuracy | None = None,
        done: int = 0,
        quiet: bool = False,
        console: Console | None = None,
    ) -> None:
        if steps is not None:
            check_range("Progress", "steps", steps, at_least=0)
        super().__init__(title, total=steps, done=done, quiet=quiet, console=console)
        self._accuracy = accuracy
        self._bar.start()

    def on_step(self, result: StepResult) -> None:
        figures = [f"{result.received} labels"]
        if self._accuracy is not None:
            self._accuracy.on_step(result)
            if self._accuracy.stream is not None:
                figures.insert(0, f"{self._accuracy.stream:.1f} % right")
        self.advance(" · ".join(figures))

    def close(self) -> None:
        """Stop updating the bar and release the terminal."""
        self._bar.stop()


def format_metrics(numbers: Mapping[str, float]) -> str:
    """Format named numbers for the end of a bar.

    >>> format_metrics({"loss": 0.51234, "accuracy": 0.9})
    'loss 0.512 · accuracy 0.9'
    """
    return " · ".join(f"{name} {value:.3g}" for name, value in numbers.items())


def print_table(table: ResultTable, *, console: Console | None = None) -> None:
    """Print a table to the terminal."""
    terminal = console or Console()
    terminal.print(terminal_table(table, terminal.width))
