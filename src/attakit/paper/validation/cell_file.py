"""Results stored cell by cell, so that stopped work can continue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from attakit.errors import StateError
from attakit.processes.pool import run_in_processes
from attakit.report.lines import LineFile, as_json

CellNumbers = dict[str, float]

_Cell = TypeVar("_Cell")  # a frozen dataclass of plain values


class CellFile:
    """A file with one JSON line per finished cell.

    Parameters
    ----------
    path
        The file. Cells that are already finished are kept.
    kind
        Name of the experiment.
    settings
        Settings that affect results, apart from the cell. A file with other settings is refused.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "cells.jsonl"
    >>> file = CellFile(path, "squares", {})
    >>> file.write({"side": 2}, {"area": 4.0})
    >>> CellFile(path, "squares", {}).find({"side": 2})
    {'area': 4.0}
    """

    def __init__(self, path: Path, kind: str, settings: Mapping[str, Any]) -> None:
        self._lines = LineFile(path, kind, {"settings": dict(settings)}, resume_after=-1)
        kept = self._lines.kept
        if kept and as_json(kept[0]["settings"]) != as_json(settings):
            raise StateError(
                f"{path} holds results with other settings: {_differences(kept[0], settings)}. Use "
                "another --folder, repeat these settings, or delete the file."
            )
        self._found = {as_json(line["cell"]): dict(line["result"]) for line in kept[1:]}

    def find(self, cell: Mapping[str, Any]) -> CellNumbers | None:
        """Return the result of a cell, if it is finished."""
        return self._found.get(as_json(cell))

    def write(self, cell: Mapping[str, Any], result: CellNumbers) -> None:
        """Store the result of a cell."""
        self._lines.write({"kind": "cell", "cell": dict(cell), "result": result})
        self._found[as_json(cell)] = result


def _differences(first: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    there = first["settings"]
    names = [n for n in {**there, **settings} if there.get(n) != settings.get(n)]
    return ", ".join(f"{n} = {there.get(n)} (now {settings.get(n)})" for n in names)


def complete_cells(
    file: CellFile,
    cells: Sequence[_Cell],
    work: Callable[[_Cell], CellNumbers],
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[_Cell, CellNumbers]:
    """Return the results of all cells: those in the file, and the rest computed now in parallel.

    `work` is a function at the top level of a module, or a partial of one. It runs in processes of
    one thread each; with 0 workers in this one. `progress` gets the numbers of finished and of all
    cells. A result is written to the file at once.
    """
    found: dict[_Cell, CellNumbers] = {}
    for cell in cells:
        if (result := file.find(_plain(cell))) is not None:
            found[cell] = result

    def keep(cell: _Cell, result: CellNumbers) -> None:
        file.write(_plain(cell), result)
        found[cell] = result
        progress(len(found), len(cells))

    progress(len(found), len(cells))
    left = [cell for cell in cells if cell not in found]
    if left:
        run_in_processes(
            work,
            left,
            on_result=keep,
            workers=workers,
            advice="Finished cells are kept: run the same command again to continue.",
        )
    return {cell: found[cell] for cell in cells}


def _plain(cell: Any) -> dict[str, Any]:
    return asdict(cell)
