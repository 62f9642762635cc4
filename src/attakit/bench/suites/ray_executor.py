"""Jobs on a Ray cluster, through the same code as on one machine.

Nodes need attakit and the data, but no shared file system. A task works in a temporary folder, gets
the source model and the saved run, and returns the files it has written.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attakit.bench.run_folder import RUN_FILES
from attakit.bench.suites.sources import Source
from attakit.bench.suites.work import CellEnd, CellEvent, CellProgress, CellResult, Job, do_job
from attakit.build.sets.places import DATA_VARIABLE
from attakit.errors import StreamError
from attakit.processes.interrupt import Interrupted
from attakit.processes.ray_cluster import connect, import_ray

Files = dict[str, bytes]
_RETRIES = 3  # retries of a task whose node dies


class RayExecutor:
    """Runs cells on a Ray cluster. Use it in a `with` block.

    Parameters
    ----------
    sources
        The source model of each cell, by the cell's name. It is sent to the nodes.
    address
        The cluster's address. None uses $RAY_ADDRESS, a local cluster, or starts one.
    """

    has_room = True  # Ray queues what it has no room for

    def __init__(self, sources: Mapping[str, Source], *, address: str | None = None) -> None:
        self._ray = import_ray()
        self._address = address
        self._sources = sources
        self._sent: dict[Path, Any] = {}
        self._running: dict[Any, Job] = {}

    def __enter__(self) -> RayExecutor:
        ray = self._ray
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            connect(ray, self._address)
        # A new process for every cell, so that the peak memory of a run is its own.
        self._task = ray.remote(max_calls=1, max_retries=_RETRIES)(do_job_away)
        # Here, because a node that dies takes its actors with it.
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._board = ray.remote(num_cpus=0, scheduling_strategy=here)(Board).remote()
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._ray.kill(self._board)
        if self._is_ours:
            self._ray.shutdown()

    def start(self, job: Job) -> None:
        source = self._sources[job.cell]
        assert not isinstance(source, StreamError), "a cell without a source model is not started"
        if source.file not in self._sent:
            self._sent[source.file] = self._ray.put(source.file.read_bytes())
        task = self._task.options(num_cpus=job.experiment.threads or 1, name=job.cell).remote(
            job,
            source.file.suffix,
            self._sent[source.file],
            {} if job.restart else read_files(job.experiment.report.folder),
            _Surroundings.here(),
            self._board,
        )
        self._running[task] = job

    def wait(self, seconds: float) -> Sequence[CellEvent]:
        tasks = list(self._running)
        ended, _ = self._ray.wait(tasks, timeout=seconds) if tasks else ([], [])
        # Steps first: after the end of a cell they are outdated.
        events: list[CellEvent] = list(self._ray.get(self._board.read.remote()))
        return events + [self._end(task) for task in ended]

    def stop(self) -> None:
        self._ray.get(self._board.stop.remote())

    def _end(self, task: Any) -> CellEnd:
        job = self._running.pop(task)
        try:
            outcome, files = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            last_line = str(error).strip().splitlines()[-1]
            return CellEnd(job.cell, CellResult("failed", f"Ray: {last_line}", str(error)))
        except self._ray.exceptions.RayError as error:
            first_line = str(error).strip().partition("\n")[0]
            return CellEnd(job.cell, CellResult("lost", f"Ray lost this cell: {first_line}"))
        write_files(job.experiment.report.folder, files)
        return CellEnd(job.cell, outcome)


class Board:
    """A Ray actor to which tasks report progress, and which says whether to stop.

    Examples
    --------
    >>> board = Board()
    >>> board.report(CellProgress("a", 1, 2))
    False
    >>> board.stop()
    >>> board.report(CellProgress("a", 2, 2)), len(board.read()), len(board.read())
    (True, 2, 0)
    """

    def __init__(self) -> None:
        self._steps: list[CellProgress] = []
        self._stopped = False

    def report(self, step: CellProgress) -> bool:
        """Record a step; returns True to stop."""
        self._steps.append(step)
        return self._stopped

    def read(self) -> list[CellProgress]:
        """Return the steps since the last call."""
        steps, self._steps = self._steps, []
        return steps

    def stop(self) -> None:
        """Ask every task to stop after its current step."""
        self._stopped = True


@dataclass(frozen=True)
class _Surroundings:
    """What a task must know about the command's environment, to find data and methods."""

    folder: Path
    data: str | None

    @staticmethod
    def here() -> _Surroundings:
        return _Surroundings(Path.cwd(), os.environ.get(DATA_VARIABLE))

    def enter(self) -> None:
        """Make this process, which runs one task only, look for files where the command would."""
        if self.folder.is_dir():
            os.chdir(self.folder)
            sys.path.append("")
        if self.data is not None:
            os.environ[DATA_VARIABLE] = self.data


def do_job_away(
    job: Job, suffix: str, weights: bytes, files: Files, around: _Surroundings, board: Any
) -> tuple[CellResult, Files]:
    """Run a job in a temporary folder; return its outcome and the files it wrote."""
    ray = import_ray()
    around.enter()

    def report(step: CellProgress) -> None:
        if ray.get(board.report.remote(step)):
            raise Interrupted("Stopped. The last snapshot counts.")

    with TemporaryDirectory(prefix="attakit-") as place:
        folder, model = Path(place) / "run", Path(place) / f"source{suffix}"
        model.write_bytes(weights)
        write_files(folder, files)
        outcome = do_job(replace(job, folder=folder, weights=model), report)
        return outcome, read_files(folder)


def read_files(folder: Path) -> Files:
    """Return the files of a run."""
    return {name: (folder / name).read_bytes() for name in RUN_FILES if (folder / name).exists()}


def write_files(folder: Path, files: Files) -> None:
    """Write the files of a run into a folder, and delete a run's other files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in RUN_FILES:
        if name in files:
            (folder / name).write_bytes(files[name])
        else:
            (folder / name).unlink(missing_ok=True)
