"""How commands talk: lines, JSON, bars for work that may come, and the end by Ctrl-C."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape

from attakit.build.models import DIGITS_TRAINING
from attakit.build.sets.places import COUNTS
from attakit.build.task import Counting
from attakit.processes.interrupt import Interrupted
from attakit.report.console import WorkBar, format_metrics


@contextmanager
def interruptible(message: str) -> Iterator[None]:
    """Turn Ctrl-C into our own message and exit code; Typer has another."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(message) from None


@contextmanager
def late_bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A bar for work that may come never, once or often: seen from its first piece to its last."""
    with ExitStack() as stack:
        bars: list[WorkBar] = []

        def show(done: int, total: int, note: str = "") -> None:
            if not bars:
                bars.append(stack.enter_context(WorkBar(title, total=total, quiet=quiet)))
            bars[0].reach(done, note)
            if done == total:
                stack.close()
                bars.clear()

        yield show


@contextmanager
def training_bar(*, quiet: bool) -> Iterator[Callable[[int, dict[str, float]], None]]:
    """A bar for training the source model of digits, seen only if and while it is trained."""
    with late_bar("source model", quiet=quiet) as show:
        yield lambda update, numbers: show(update, DIGITS_TRAINING.updates, format_metrics(numbers))


@contextmanager
def counting_bar(title: str, note: str, *, quiet: bool) -> Iterator[Counting]:
    """A bar for pieces that are counted, with one note about all of them."""
    with late_bar(title, quiet=quiet) as show:
        yield lambda done, total: show(done, total, note)


class CountsOnce(logging.Filter):
    """Lets what is said about the size of a data set through once, however often it is read.

    Examples
    --------
    >>> once, record = CountsOnce(), logging.makeLogRecord({"name": COUNTS.name, "msg": "few"})
    >>> once.filter(record), once.filter(record)
    (True, False)
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name != COUNTS.name:
            return True
        is_news = record.getMessage() not in self._told
        self._told.add(record.getMessage())
        return is_news


def say(line: str) -> None:
    """Print one line of text to standard output."""
    Console().print(escape(line), soft_wrap=True, highlight=False)


def print_json(values: dict[str, Any]) -> None:
    """Print one JSON object to standard output."""
    sys.stdout.write(json.dumps(values, indent=2) + "\n")
