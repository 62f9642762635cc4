"""Runs side by side: one table per stream, because figures of different streams do not compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attakit.report.fairness import different_models
from attakit.report.figures import Row, summarise
from attakit.report.lines import as_json
from attakit.report.runs import RunRecord

# Of the stream's settings the one that a method may have for itself, as in the paper's protocol.
_OF_THE_METHOD = "stream.batch_size"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The methods that met one stream.

    Parameters
    ----------
    title
        What sets the stream apart from the others; None where there is no other.
    runs
        All that count.
    notes
        What a reader must know to trust the figures.
    """

    title: str | None
    runs: list[RunRecord]
    notes: list[str]

    @property
    def rows(self) -> list[Row]:
        """One per method, averaged over seeds."""
        return summarise(self.runs)


def compare(runs: Sequence[RunRecord]) -> list[Comparison]:
    """One comparison per stream, in order of appearance.

    A run that repeats another with the same settings, seed and source model says nothing new and is
    left out.

    >>> def run(order):
    ...     settings = {"method": {"name": "tent"}, "stream": {"order": order}}
    ...     return RunRecord(settings, {}, [], [], [], None)
    >>> [(one.title, len(one.rows)) for one in compare([run("random"), run("gradual")])]
    [('order = random', 1), ('order = gradual', 1)]
    """
    streams: dict[str, list[RunRecord]] = {}
    for run in runs:
        streams.setdefault(as_json(_stream(run)), []).append(run)
    found = [_stream(own[0]) for own in streams.values()]
    names = sorted({name for stream in found for name in stream})
    differing = [n for n in names if any(s.get(n) != found[0].get(n) for s in found)]
    return [
        _comparison(_title(stream, differing), own)
        for stream, own in zip(found, streams.values(), strict=True)
    ]


def _stream(run: RunRecord) -> dict[str, object]:
    return {
        name: value
        for name, value in run.settings.items()
        if name.startswith("stream.") and name != _OF_THE_METHOD
    }


def _title(stream: dict[str, object], differing: Sequence[str]) -> str | None:
    told = [f"{name.removeprefix('stream.')} = {stream.get(name)}" for name in differing]
    return ", ".join(told) or None


def _comparison(title: str | None, runs: Sequence[RunRecord]) -> Comparison:
    kept: dict[str, RunRecord] = {}
    for run in runs:
        model = run.environment.get("model")
        key = as_json([run.label, run.settings, run.seed, model])
        if key not in kept or (run.is_finished and not kept[key].is_finished):
            kept[key] = run
    counted = list(kept.values())
    notes = [different_models(counted)]
    if len(counted) < len(runs):
        left_out = len(runs) - len(counted)
        notes.append(f"Left out: {left_out} that repeat settings, seed and model of another.")
    return Comparison(title, counted, [note for note in notes if note])
