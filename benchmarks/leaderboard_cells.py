"""Which streams of the leaderboard are complete: only those are ranked, and others are named."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from attakit.bench.run_folder import DONE
from attakit.bench.suites.cells import Cell, expand
from attakit.report.runs import INAPPLICABLE_FILE, RunRecord, grouped, read_run
from attakit.settings.suite import load_suite

ROOT = Path(__file__).resolve().parent.parent


@cache  # reading a thousand runs takes a while
def complete_runs(*suites: Path) -> list[RunRecord]:
    """The runs of all streams whose cells have all ended, sorted by folder."""
    ended = [cells for cells in _streams(*suites).values() if all(map(_has_ended, cells))]
    folders = sorted(ROOT / cell.folder for cells in ended for cell in cells)
    return [read_run(folder) for folder in folders]


@cache
def missing_streams(*suites: Path) -> list[str]:
    """The labels of streams with cells that have not ended."""
    streams = _streams(*suites).items()
    return [label for label, cells in streams if not all(map(_has_ended, cells))]


@cache
def _streams(*suites: Path) -> dict[str, list[Cell]]:
    cells = [cell for path in suites for cell in expand(load_suite(path))]
    return grouped(cells, lambda cell: cell.stream)


def _has_ended(cell: Cell) -> bool:
    return any((ROOT / cell.folder / name).exists() for name in (DONE, INAPPLICABLE_FILE))
