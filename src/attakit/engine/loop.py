"""The main loop: one code path for answers that come at once, three batches later, or tomorrow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from attakit.engine.buffer import Buffer
from attakit.engine.samples_left import SamplesLeft
from attakit.label.checking import check_class_count
from attakit.label.ledger import Ledger
from attakit.protocols import Method, Oracle, Reporter
from attakit.queries import Allowance, Answer
from attakit.records import Batch, Step, StepResult, Training


def run(
    stream: Iterable[Batch],
    method: Method,
    oracle: Oracle,
    ledger: Ledger,
    reporters: Sequence[Reporter] = (),
    *,
    samples: int | None = None,
    buffer: int | Buffer = 0,
) -> None:
    """Feed a stream through a method, asking for labels within the budget.

    Parameters
    ----------
    stream
        The batches.
    method, oracle, ledger, reporters
        The parts that adapt, answer, pay and observe.
    samples
        Number of samples, so that the budget can be spread over them. Not needed if the stream
        knows its length.
    buffer
        How many samples to collect from small batches before the method steps; see `Buffer`.
    """
    left = SamplesLeft(stream, samples)
    collected = buffer if isinstance(buffer, Buffer) else Buffer(buffer)
    for batch in stream:
        allowance = replace(ledger.budget.allowance, samples_left=left.at(batch))
        step, seconds = collected.answer(batch, method, allowance)
        waits = collected.stepped is None
        result = learn(batch, step, seconds, method, oracle, ledger, waits=waits)
        for reporter in reporters:
            reporter.on_step(result)


def answer(batch: Batch, method: Method, allowance: Allowance) -> tuple[Step, float]:
    """First half of a turn: call the method's step and measure its seconds. Asks no question."""
    return Buffer().answer(batch, method, allowance)


def learn(
    batch: Batch,
    step: Step,
    seconds: float,
    method: Method,
    oracle: Oracle,
    ledger: Ledger,
    *,
    waits: bool = False,
) -> StepResult:
    """Second half of a turn: ask the questions, collect answers, learn from them.

    While samples wait in a buffer, the method learns only if an answer arrives.
    """
    ledger.ask(step.queries)
    oracle.ask(step.queries)
    answers = ledger.settle(oracle.collect())
    check_class_count(answers, step.prediction.logits.shape[1])
    began = time.perf_counter()
    training = Training() if waits and not answers else method.learn(answers)
    seconds += time.perf_counter() - began
    return StepResult(
        batch=batch if step.batch is None else step.batch,
        step=step,
        answers=answers,
        training=training,
        seconds=seconds,
        asked=ledger.asked,
        received=ledger.received,
        remaining=ledger.budget.remaining,
        cost=ledger.cost,
        counts=ledger.counts,
    )


def drain(
    method: Method,
    oracle: Oracle,
    ledger: Ledger,
    *,
    wait: float = 0.0,
    class_count: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Any] = time.sleep,
    pause: float = 0.05,
) -> Training:
    """After the stream, collect late answers, then close the open questions.

    Parameters
    ----------
    wait
        Seconds to wait for open questions. With zero, open questions expire and are refunded.
    class_count
        Number of the model's classes, to refuse invalid answers; None if unknown.
    clock, sleep, pause
        The clock, and how to wait between two checks.
    """
    answers: list[Answer] = []
    deadline = clock() + wait
    while ledger.open and clock() < deadline:
        fresh = ledger.settle(oracle.collect())
        if class_count is not None:
            check_class_count(fresh, class_count)
        answers += fresh
        if not fresh:
            sleep(min(pause, max(0.0, deadline - clock())))
    answers += ledger.expire()
    return method.learn(answers) if answers else Training()
