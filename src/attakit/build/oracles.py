"""The oracle and the ledger that an experiment's [labels] table describes."""

from __future__ import annotations

import sys
from collections.abc import Callable

from attakit.label.budget import Budget
from attakit.label.known import KnownLabels
from attakit.label.ledger import Ledger
from attakit.label.terminal import Terminal
from attakit.label.wrappers import Delayed, Expiring, Noisy, Skipping
from attakit.protocols import Oracle
from attakit.queries import SampleId
from attakit.settings.experiment import Experiment, LabelsTable
from attakit.stream.batches import Truth


def build_oracle(
    table: LabelsTable,
    truth: Truth,
    seed: int,
    *,
    where: Callable[[SampleId], str] = str,
    write: Callable[[str], None] | None = None,
) -> Oracle:
    """Build the oracle that the [labels] table describes, wrapped as it says."""
    oracle: Oracle
    if table.oracle == "ask":
        oracle = Terminal(truth.classes, where=where, read=_read)
        oracle.write = write or oracle.write
    else:
        oracle = KnownLabels(truth.labels)
    if table.noise:
        oracle = Noisy(oracle, rate=table.noise, classes=len(truth.classes), seed=seed)
    if table.skips:
        oracle = Skipping(oracle, rate=table.skips, seed=seed)
    if table.delay or table.jitter:
        oracle = Delayed(oracle, rounds=table.delay, jitter=table.jitter, seed=seed)
    if table.expiry:
        oracle = Expiring(oracle, rounds=table.expiry)
    return oracle


def _read(prompt: str) -> str:
    # Not with input(prompt), which prompts on standard output, where results may go.
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return input()


def build_ledger(experiment: Experiment) -> Ledger:
    """Build the ledger with the experiment's budget."""
    table = experiment.labels
    # Runs that are matched get the same number of answers, whatever these cost.
    price = table.yes_no_price if table.matched is None else 1.0
    return Ledger(Budget(table.limit, yes_no_price=price))
