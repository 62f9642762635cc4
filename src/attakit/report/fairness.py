"""Check that a comparison is fair, and describe the conditions of the runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from attakit.report.lineup import Entrant
from attakit.report.runs import RunRecord
from attakit.report.streams import repeats_note, setting
from attakit.report.summaries import final_figures

_SHOWN = 8  # characters of a hash
_SCORED = "Every prediction is scored before the method learns from its batch."

_Value = TypeVar("_Value")
StreamSeed = tuple[str, int | None]  # runs of different methods on it are compared


@dataclass(frozen=True)
class Fairness:
    """What the finished runs of a suite have in common, and warnings where they differ."""

    shared: tuple[str, ...]
    warnings: tuple[str, ...]


def check_fairness(
    runs: Sequence[tuple[str, RunRecord]], *, own_batch_sizes: bool = False
) -> Fairness:
    """Compare source model, sample order and batch size of finished runs, by stream.

    `own_batch_sizes` allows each method its own batch size, as in the paper.
    """
    if not runs:
        return Fairness((), ())
    shared, warnings = [], []
    for what in ("model", "stream"):
        found = _fingerprints(runs, what)
        differences = [_differ(what, at, own) for at, own in found.items() if len(own) > 1]
        warnings += differences
        if found and not differences:
            shared.append(_same(what, found))
    sizes = _grouped((setting(run, "stream", "batch_size"), run.label) for _, run in runs)
    listed = ", ".join(f"{size} for {_listed(sizes[size])}" for size in sorted(sizes))
    if len(sizes) == 1:
        shared.append(f"batch size {next(iter(sizes))} for all")
    elif own_batch_sizes:
        shared.append(f"batch size {listed}, as in the paper")
    else:
        warnings.append(f"Batch sizes differ: {listed}.")
    return Fairness((*shared, "predictions scored before updates"), tuple(warnings))


def _fingerprints(
    runs: Iterable[tuple[str, RunRecord]], what: str
) -> dict[StreamSeed, dict[str, list[str]]]:
    """Return the fingerprints of each stream and seed, with their methods."""
    found: dict[StreamSeed, list[tuple[str, str]]] = {}
    for stream, run in runs:
        fingerprint = run.environment.get(what)
        if fingerprint is not None:
            found.setdefault((stream, run.seed), []).append((str(fingerprint), run.label))
    return {at: _grouped(pairs) for at, pairs in found.items()}


def _same(what: str, found: Mapping[StreamSeed, Mapping[str, Sequence[str]]]) -> str:
    values = {value for own in found.values() for value in own}
    if len(values) == 1:
        return f"same {what} {next(iter(values))}"
    listed = ", ".join(f"{name}/{seed} {next(iter(own))}" for (name, seed), own in found.items())
    return f"same {what} for all methods ({listed})"


def _differ(what: str, at: StreamSeed, values: Mapping[str, Sequence[str]]) -> str:
    listed = ", ".join(f"{value} in {_listed(labels)}" for value, labels in values.items())
    return f"Not the same {what} in {at[0]}, seed {at[1]}: {listed}."


def fairness_notes(entrants: Sequence[Entrant], *, pooled: bool = False) -> list[str]:
    """Return notes about models, batch sizes, scoring, labels and runs, for below a table.

    `pooled` means that numbers are over the streams of all orders, after adaptation.
    """
    runs = [run for entrant in entrants for run in entrant.all_runs]
    if not runs:
        return []
    by_order = [len(own) for entrant in entrants for own in entrant.runs.values()]
    counts = [len(entrant.all_runs) for entrant in entrants] if pooled else by_order
    notes = [
        _models(runs),
        _batches(runs),
        "" if pooled else _SCORED,
        _labels(entrants),
        _counts(counts, runs),
        *repeats_note(sum(entrant.left_out for entrant in entrants)),
    ]
    return [note for note in notes if note]


def _models(runs: Sequence[RunRecord]) -> str:
    hashes = _hashes(runs)
    if "" in hashes:
        return "Source model not recorded in every run."
    return different_models(runs) or f"Source model {hashes[0][:_SHOWN]} for all."


def different_models(runs: Sequence[RunRecord]) -> str:
    """Return a warning if runs began with different source models, else an empty text."""
    hashes = [each for each in _hashes(runs) if each]
    if len(hashes) < 2:
        return ""
    return f"Source models DIFFER: {', '.join(each[:_SHOWN] for each in hashes)}."


def _hashes(runs: Sequence[RunRecord]) -> list[str]:
    return list(dict.fromkeys(str(run.environment.get("model") or "") for run in runs))


def _batches(runs: Sequence[RunRecord]) -> str:
    sizes = _grouped((setting(run, "stream", "batch_size", "?"), run.label) for run in runs)
    if len(sizes) == 1:
        return f"Batches of {next(iter(sizes))} for all."
    return f"Batch sizes differ: {_bracketed(sizes)}."


def _labels(entrants: Sequence[Entrant]) -> str:
    def used(entrant: Entrant) -> str:
        ends = [final_figures(run) for run in entrant.all_runs]
        own = sorted({end.get("cost") or end.get("labels") or 0 for end in ends})
        span = f"{own[0]:g}" if len(own) == 1 else f"{own[0]:g} to {own[-1]:g}"
        return span if entrant.budget is None else f"{span} of {entrant.budget}"

    return f"Labels used: {_bracketed(_grouped((used(one), one.label) for one in entrants))}."


def _counts(cells: Sequence[int], runs: Sequence[RunRecord]) -> str:
    few, many = min(cells), max(cells)
    each = f"{few} run{'s' * (few != 1)}" if few == many else f"{few} to {many} runs"
    going = sum(not run.is_finished for run in runs)
    unfinished = f", {going} of all {len(runs)} not finished" if going else ""
    return f"Each figure is from {each}{unfinished}."


def _grouped(pairs: Iterable[tuple[_Value, str]]) -> dict[_Value, list[str]]:
    """Group labels by value."""
    found: dict[_Value, list[str]] = {}
    for value, label in pairs:
        found.setdefault(value, []).append(label)
    return found


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(labels))


def _bracketed(found: Mapping[Any, Sequence[str]]) -> str:
    return "; ".join(f"{value} ({_listed(labels)})" for value, labels in found.items())
