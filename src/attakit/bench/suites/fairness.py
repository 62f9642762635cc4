"""Are the cells of a suite comparable? What they share, and where they do not share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from attakit.bench.suites.cells import Cell
from attakit.report.runs import RunRecord
from attakit.settings.suite import Protocol


@dataclass(frozen=True)
class Fairness:
    """What the finished cells have in common, and warnings where they differ."""

    shared: tuple[str, ...]
    warnings: tuple[str, ...]


def check_fairness(runs: Sequence[tuple[Cell, RunRecord]], protocol: Protocol) -> Fairness:
    """Compare source model, sample order and batch size over cells that are compared in tables.

    Parameters
    ----------
    runs
        Finished cells with their results.
    protocol
        Under "paper", batch sizes may differ.
    """
    if not runs:
        return Fairness((), ())
    shared, warnings = [], []
    for what in ("model", "stream"):
        rows = _per_row(runs, what)
        told = [_differ(what, row, found) for row, found in rows.items() if len(found) > 1]
        warnings += told
        if rows and not told:
            shared.append(_same(what, rows))
    sizes = _batch_sizes(runs)
    told_sizes = ", ".join(f"{size} for {_listed(who)}" for size, who in sorted(sizes.items()))
    if len(sizes) == 1:
        shared.append(f"batch size {next(iter(sizes))} for all")
    elif protocol == "paper" and sizes:
        shared.append(f"batch size {told_sizes}, as in the paper")
    elif sizes:
        warnings.append(f"Batch sizes differ: {told_sizes}.")
    return Fairness((*shared, "predictions scored before updates"), tuple(warnings))


Row = tuple[str, int]  # stream and seed: what one column of a table averages over


def _per_row(runs: Iterable[tuple[Cell, RunRecord]], what: str) -> dict[Row, dict[str, list[str]]]:
    """For each stream and seed, the fingerprints found, and in which methods."""
    rows: dict[Row, dict[str, list[str]]] = {}
    for cell, run in runs:
        fingerprint = run.environment.get(what)
        if fingerprint is not None:
            found = rows.setdefault((cell.stream, cell.seed), {})
            found.setdefault(str(fingerprint), []).append(cell.method)
    return rows


def _same(what: str, rows: Mapping[Row, Mapping[str, Sequence[str]]]) -> str:
    values = {value for found in rows.values() for value in found}
    if len(values) == 1:
        return f"same {what} {next(iter(values))}"
    told = ", ".join(f"{name}/{seed} {next(iter(found))}" for (name, seed), found in rows.items())
    return f"same {what} for all methods ({told})"


def _differ(what: str, row: Row, values: Mapping[str, Sequence[str]]) -> str:
    told = ", ".join(f"{value} in {_listed(who)}" for value, who in values.items())
    return f"Not the same {what} in {row[0]}, seed {row[1]}: {told}."


def _batch_sizes(runs: Iterable[tuple[Cell, RunRecord]]) -> dict[int, list[str]]:
    sizes: dict[int, list[str]] = {}
    for cell, run in runs:
        sizes.setdefault(int(run.experiment["stream"]["batch_size"]), []).append(cell.method)
    return sizes


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))
