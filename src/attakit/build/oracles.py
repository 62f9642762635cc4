"""The oracle and the ledger of an experiment's [labels] table."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from attakit.build.construct import import_named
from attakit.errors import SettingError
from attakit.label.budget import Budget
from attakit.label.crowd import Crowd
from attakit.label.endpoint import Endpoint
from attakit.label.known import KnownLabels
from attakit.label.ledger import Ledger
from attakit.label.model_oracle import ModelOracle
from attakit.label.said import Said
from attakit.label.team import Team
from attakit.label.terminal import Terminal
from attakit.label.wrappers import Delayed, Expiring, Noisy, Skipping
from attakit.protocols import Oracle
from attakit.queries import SampleId
from attakit.randomness import derived_seed
from attakit.settings.experiment import CrowdTable, Experiment, LabelsTable, ModelOracleTable
from attakit.stream.batches import Truth


def build_oracle(
    table: LabelsTable,
    truth: Truth,
    seed: int,
    *,
    where: Callable[[SampleId], str] = str,
    write: Callable[[str], None] | None = None,
) -> Oracle:
    """Build the oracle of the [labels] table, with its wrappers."""

    def people(who: str) -> Oracle:
        if who == "known":
            return KnownLabels(truth.labels)
        terminal = Terminal(truth.classes, where=where, read=_read)
        terminal.write = write or terminal.write
        return terminal

    oracle: Oracle
    if table.oracle == "crowd":
        oracle = _crowd(table.crowd or CrowdTable(), truth, seed)
    elif table.oracle == "model":
        oracle = _model_oracle(table, truth, where, people)
    else:
        oracle = people(table.oracle)
    if table.noise:
        oracle = Noisy(oracle, rate=table.noise, classes=len(truth.classes), seed=seed)
    if table.skips:
        oracle = Skipping(oracle, rate=table.skips, seed=seed)
    if table.delay or table.jitter:
        oracle = Delayed(oracle, rounds=table.delay, jitter=table.jitter, seed=seed)
    if table.expiry:
        oracle = Expiring(oracle, rounds=table.expiry)
    return oracle


def _crowd(table: CrowdTable, truth: Truth, seed: int) -> Crowd:
    """Build simulated people who err at different rates."""
    classes = len(truth.classes)
    people = [
        Noisy(
            KnownLabels(truth.labels, annotator=f"person {number}"),
            rate=rate,
            classes=classes,
            seed=derived_seed(seed, "person", number),
        )
        for number, rate in enumerate(table.noise, start=1)
    ]
    settings = table.model_dump(include={"answers", "settle", "soft"})
    return Crowd(people, classes=classes, seed=seed, **settings)


def _model_oracle(
    table: LabelsTable,
    truth: Truth,
    where: Callable[[SampleId], str],
    people: Callable[[str], Oracle],
) -> Oracle:
    """Build the model of [labels.model], and people for the rest if wanted."""
    model = table.model
    if model is None:
        raise SettingError(
            'labels.oracle is "model", but the table [labels.model] is missing. Give it a function '
            '("package.module:function") or a url.'
        )
    oracle = ModelOracle(
        _model_function(model, truth.classes, where),
        classes=truth.classes,
        **model.model_dump(
            include={
                "batch_size",
                "least_confidence",
                "soft",
                "weight",
                "price",
                "retries",
                "pause",
            }
        ),
    )
    return oracle if model.people is None else Team([oracle], people(model.people))


def _model_function(
    table: ModelOracleTable, classes: Sequence[str], where: Callable[[SampleId], str]
) -> Callable[[Sequence[SampleId]], Sequence[Said]]:
    if table.url is not None:
        return Endpoint(
            table.url,
            classes=classes,
            where=where,
            send_files=table.send_files,
            token=_token(table.token_variable),
            timeout=table.timeout,
        )
    function = import_named(str(table.function), "labelling function")
    return lambda samples: function([where(sample) for sample in samples])


def _token(variable: str | None) -> str | None:
    if variable is None:
        return None
    if variable not in os.environ:
        raise SettingError(
            f"labels.model.token_variable: the environment variable {variable!r} is not set. It "
            f"must hold the token for the url."
        )
    return os.environ[variable]


def _read(prompt: str) -> str:
    # input(prompt) would print to standard output, which is for results.
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return input()


def build_ledger(experiment: Experiment) -> Ledger:
    """Build the ledger with the experiment's budget."""
    table = experiment.labels
    # Matched runs get the same number of answers, whatever their cost.
    price = table.yes_no_price if table.matched is None else 1.0
    return Ledger(Budget(table.limit, yes_no_price=price))
