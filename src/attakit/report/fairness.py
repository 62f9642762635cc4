"""What must be the same for a comparison to be fair, read from the runs and said in words."""

from __future__ import annotations

from collections.abc import Sequence

from attakit.report.figures import final_figures
from attakit.report.lineup import Entrant
from attakit.report.runs import RunRecord
from attakit.report.streams import repeats_note, setting

_SHOWN = 8  # characters of a hash
_SCORED = "Every prediction is scored as it was given, before the method learns from its batch."


def fairness(entrants: Sequence[Entrant], *, pooled: bool = False) -> list[str]:
    """Sentences about models, batch sizes, scoring, labels and runs.

    `pooled` says that figures are over the streams of all orders together, after adaptation.
    """
    runs = [run for entrant in entrants for run in entrant.all_runs]
    if not runs:
        return []
    scored = "" if pooled else _SCORED
    cells = [len(e.all_runs) for e in entrants] if pooled else _cells(entrants)
    told = [_models(runs), _batches(entrants), scored, _labels(entrants), _counts(cells, runs)]
    told += repeats_note(sum(entrant.left_out for entrant in entrants))
    return [sentence for sentence in told if sentence]


def _models(runs: Sequence[RunRecord]) -> str:
    hashes = _hashes(runs)
    if "" in hashes:
        return "Source model not recorded in every run."
    return different_models(runs) or f"Source model {hashes[0][:_SHOWN]} for all."


def different_models(runs: Sequence[RunRecord]) -> str:
    """A warning where runs began with different source models; else nothing."""
    hashes = [each for each in _hashes(runs) if each]
    if len(hashes) < 2:
        return ""
    return f"Source models DIFFER: {', '.join(each[:_SHOWN] for each in hashes)}."


def _hashes(runs: Sequence[RunRecord]) -> list[str]:
    return list(dict.fromkeys(str(run.environment.get("model") or "") for run in runs))


def _batches(entrants: Sequence[Entrant]) -> str:
    sizes: dict[str, list[str]] = {}
    for entrant in entrants:
        for run in entrant.all_runs:
            size = str(setting(run, "stream", "batch_size", "?"))
            sizes.setdefault(size, []).append(entrant.label)
    if len(sizes) == 1:
        return f"Batches of {next(iter(sizes))} for all."
    told = [f"{size} ({', '.join(dict.fromkeys(labels))})" for size, labels in sizes.items()]
    return f"Batch sizes differ: {'; '.join(told)}."


def _labels(entrants: Sequence[Entrant]) -> str:
    counts: dict[str, list[str]] = {}
    for entrant in entrants:
        own = sorted({int(final_figures(r).get("labels") or 0) for r in entrant.all_runs})
        span = f"{own[0]}" if len(own) == 1 else f"{own[0]} to {own[-1]}"
        allowed = "" if entrant.budget is None else f" of {entrant.budget}"
        counts.setdefault(span + allowed, []).append(entrant.label)
    told = [f"{span} ({', '.join(dict.fromkeys(n))})" for span, n in counts.items()]
    return f"Labels used: {'; '.join(told)}."


def _cells(entrants: Sequence[Entrant]) -> list[int]:
    return [len(own) for entrant in entrants for own in entrant.runs.values()]


def _counts(cells: Sequence[int], runs: Sequence[RunRecord]) -> str:
    few, many = min(cells), max(cells)
    each = f"{few} run{'s' * (few != 1)}" if few == many else f"{few} to {many} runs"
    going = sum(not run.is_finished for run in runs)
    unfinished = f", {going} of all {len(runs)} not finished" if going else ""
    return f"Each figure is from {each}{unfinished}."
