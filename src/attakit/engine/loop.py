"""The loop: one code path for answers at once, three batches later, or tomorrow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attakit.label.ledger import Ledger
from attakit.protocols import Method, Oracle, Reporter
from attakit.queries import Answer
from attakit.records import Batch, Moment, Training


def run(
    stream: Iterable[Batch],
    method: Method,
    oracle: Oracle,
    ledger: Ledger,
    reporters: Sequence[Reporter] = (),
) -> None:
    """Feed a stream through a method, asking for labels within the budget."""
    for batch in stream:
        began = time.perf_counter()
        step = method.step(batch, allowance=ledger.budget.allowance)
        seconds = time.perf_counter() - began
        ledger.ask(step.queries)
        oracle.ask(step.queries)
        answers = ledger.settle(oracle.collect())
        began = time.perf_counter()
        training = method.learn(answers)
        seconds += time.perf_counter() - began
        moment = Moment(
            batch=batch,
            step=step,
            answers=answers,
            training=training,
            seconds=seconds,
            asked=ledger.asked,
            received=ledger.received,
            remaining=ledger.budget.remaining,
        )
        for reporter in reporters:
            reporter.on_step(moment)


def drain(
    method: Method,
    oracle: Oracle,
    ledger: Ledger,
    *,
    wait: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Any] = time.sleep,
    pause: float = 0.05,
) -> Training:
    """After the stream, take the answers that are still to come, then close the rest.

    Parameters
    ----------
    wait
        Seconds to wait for open questions. Zero drops them: they expire and are refunded.
    clock, sleep, pause
        How time is told and passed between two looks.
    """
    answers: list[Answer] = []
    deadline = clock() + wait
    while ledger.open and clock() < deadline:
        fresh = ledger.settle(oracle.collect())
        answers += fresh
        if not fresh:
            sleep(min(pause, max(0.0, deadline - clock())))
    answers += ledger.expire()
    return method.learn(answers) if answers else Training()
