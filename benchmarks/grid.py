"""Measure whether a grid on two cores is faster than its cells in turn with two threads.

    python benchmarks/grid.py                       # digits, a tenth of the stream
    python benchmarks/grid.py --share 1 --seeds 2   # takes minutes

Runs the same cells both ways and prints seconds and their ratio; the target is at most 0.6. Both
include starting processes and scoring; the source model is prepared before.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from attakit.bench.suites.cells import Cell, expand
from attakit.bench.suites.grid import Grid
from attakit.bench.suites.local_executor import LocalExecutor
from attakit.bench.suites.sources import prepare_sources
from attakit.settings.suite import load_suite

SUITE = Path(__file__).resolve().parent.parent / "experiments" / "digits" / "suite.toml"
CORES = 2
TARGET = 0.6


def cells_in(folder: Path, options: argparse.Namespace) -> list[Cell]:
    """Return the cells of the digits suite, with results in a folder."""
    overrides = [
        f'folder="{folder}"',
        f"base.stream.share={options.share}",
        f"grid.seeds={list(range(options.seeds))}",
        "grid.budgets=[150]",
    ]
    return [cell for cell in expand(load_suite(SUITE, overrides)) if options.only in cell.name]


def seconds_of(cells: list[Cell], *, workers: int, threads: int) -> float:
    """Return the seconds that the cells take."""
    grid = Grid(cells, prepare_sources(cells), threads=threads)
    began = time.perf_counter()
    with LocalExecutor(workers=workers) as executor:
        grid.run(executor)
    failed = [name for name, (end, _) in grid.outcomes.items() if end != "finished"]
    assert not failed, failed
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="domain-wise", help="cells whose name contains this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        after_another = cells_in(Path(place) / "one", options)
        parallel = cells_in(Path(place) / "two", options)
        alone = seconds_of(after_another, workers=1, threads=CORES)
        together = seconds_of(parallel, workers=CORES, threads=1)
    print(f"{len(parallel)} cells, one after another with {CORES} threads: {alone:.1f} s")
    print(f"{len(parallel)} cells, {CORES} at once with 1 thread each: {together:.1f} s")
    print(f"ratio {together / alone:.2f} (target: at most {TARGET})")


if __name__ == "__main__":
    main()
