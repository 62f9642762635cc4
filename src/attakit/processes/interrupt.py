"""Ctrl-C handling: let a run stop where it can be resumed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_Handler = Callable[[int, object], None] | signal.Handlers
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """The user stopped the work; the message says how to continue."""


@contextmanager
def stoppable(message: str, *, at_once: bool = False) -> Iterator[threading.Event]:
    """Make Ctrl-C stop the block after the current step; a second Ctrl-C stops it at once.

    Parameters
    ----------
    message
        Message of the `Interrupted` error that is raised when the block stops at once.
    at_once
        Let the first Ctrl-C stop at once. Use it for work that waits for the person who pressed it.

    Examples
    --------
    >>> with stoppable("Stopped.") as stop:
    ...     stop.is_set()
    False
    """
    stop = threading.Event()

    def ask_to_stop(_number: int, _frame: object) -> None:
        if at_once or stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    try:
        with _handling(_SIGNALS, ask_to_stop):
            yield stop
    except KeyboardInterrupt:
        raise Interrupted(message) from None


@contextmanager
def ignoring_ctrl_c() -> Iterator[None]:
    """Ignore Ctrl-C inside the block, and forever in processes started here.

    >>> with ignoring_ctrl_c():
    ...     signal.raise_signal(signal.SIGINT)
    """
    with _handling((signal.SIGINT,), signal.SIG_IGN):
        yield


def until(stop: threading.Event, items: Iterable[T]) -> Iterator[T]:
    """Yield the items up to the one during which the stop arrived."""
    for item in items:
        yield item
        if stop.is_set():
            return


@contextmanager
def _handling(numbers: Iterable[signal.Signals], handler: _Handler) -> Iterator[None]:
    # Only the main thread may handle signals. The owner of another thread stops it.
    in_main = threading.current_thread() is threading.main_thread()
    previous = {number: signal.signal(number, handler) for number in numbers if in_main}
    try:
        yield
    finally:
        for number, old in previous.items():
            signal.signal(number, old)
