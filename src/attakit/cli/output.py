"""How commands print: lines, JSON, log messages, and the message after Ctrl-C. No heavy imports."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape

from attakit.processes.interrupt import Interrupted


@contextmanager
def interruptible(message: str) -> Iterator[None]:
    """Turn Ctrl-C into our own message and exit code, instead of Typer's."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(message) from None


class OnceFilter(logging.Filter):
    """Drops repetitions of log messages that are marked with `extra={"once": True}`.

    Examples
    --------
    >>> once, record = OnceFilter(), logging.makeLogRecord({"msg": "few images", "once": True})
    >>> once.filter(record), once.filter(record)
    (True, False)
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if "once" not in vars(record):
            return True
        is_new = record.getMessage() not in self._seen
        self._seen.add(record.getMessage())
        return is_new


def say(line: str) -> None:
    """Print one line of text to standard output."""
    Console().print(escape(line), soft_wrap=True, highlight=False)


def print_json(values: dict[str, Any]) -> None:
    """Print one JSON object to standard output."""
    sys.stdout.write(json.dumps(values, indent=2) + "\n")
