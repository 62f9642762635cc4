"""Harm a running service in every way we know, with people answering, and check what is left.

    python benchmarks/chaos.py                      # SQLite and PostgreSQL, a few minutes
    python benchmarks/chaos.py --kills 200          # the long form: 200 SIGKILLs on each

Nothing that was accepted may be lost, the budget must be exact, predictions must continue, and
every fault must be reported. It exits with code 1 if one of these does not hold.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from chaos_faults import Faults
from chaos_service import PATIENCE, ChaosService, People, postgres

from attakit.label.budget import as_number
from attakit.service.inputs import Inputs
from attakit.service.learner.leading import LOCK_FILE
from attakit.service.learner.live import LiveLearner
from attakit.service.lock import exclusive_lock
from attakit.service.models import source_model
from attakit.service.saved_settings import find_settings, open_service
from attakit.service.web.overview import labels_body

SECOND = 1.0


class Report:
    """Print each check, and record whether all hold."""

    def __init__(self) -> None:
        self.good = True

    def check(self, holds: bool, text: str) -> None:
        self.good &= holds
        print(f"{'ok  ' if holds else 'FAIL'} {text}", flush=True)


def wait_for(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.2)
    return False


def kill_often(service: ChaosService, kills: int, draw: random.Random) -> None:
    """Kill server or learner at random moments; a server is started again.

    A server may be killed before its learner has begun. To kill a learner, we wait for one.
    """
    for number in range(kills):
        if number and number % 20 == 0:
            print(f"     {number} of {kills} SIGKILLs", flush=True)
        is_learner = draw.random() < 0.5
        if is_learner:
            wait_for(lambda: service.learner_pid() is not None)
        time.sleep(draw.uniform(0.2, 4.0))
        if is_learner and service.kill_learner():
            continue
        service.kill_server()
        service.start()


def attack(service: ChaosService, faults: Faults, report: Report) -> None:
    """Attack with hostile clients. Others get answers in a second, or 20 times the normal time."""
    before = max(service.predict_seconds() for _ in range(5))
    allowed = max(SECOND, 20 * before)
    with faults.hostile_clients():
        seconds = [service.predict_seconds() for _ in range(40)]
    text = f"hostile clients: slowest prediction {max(seconds):.2f} s (before: {before:.2f} s)"
    report.check(max(seconds) < allowed, text)


def suffer(service: ChaosService, faults: Faults, report: Report) -> None:
    """Check that each storage fault is reported while predictions continue, and then ends.

    It is reported by /readyz, as an alarm of the status, and by /metrics.
    """
    for name, fault in faults.of_storage().items():
        with fault():
            told = wait_for(lambda: service.ready()["status"] == "degraded")
            problem = (service.ready()["problems"] or ["nothing"])[0]
            told &= wait_for(lambda: is_alarm(service) and service.storage_faults() > 0)
            answered = all(service.predict_seconds() < PATIENCE for _ in range(5))
        over = wait_for(lambda: service.ready()["status"] == "ok")
        report.check(told and answered and over, f"{name}: reported as {problem[:60]!r}")


def is_alarm(service: ChaosService) -> bool:
    newest = service.status().alarms[:1]
    return any(one.what == "storage" and "Fixed after" not in one.text for one in newest)


def turn_back(service: ChaosService, people: People, report: Report) -> None:
    """Check that setting the clock back by two hours delays neither questions nor answers.

    This also holds if the service is killed and started in between.
    """
    for name, restart in (("", False), (" before a start", True)):
        service.set_clock(-7200.0)
        if restart:
            service.kill_server()
            service.start()
        began = time.monotonic()
        good = moves_on(service, people)
        seconds = time.monotonic() - began
        report.check(good, f"clock set back two hours{name}: 3 answers settled in {seconds:.0f} s")
        service.set_clock(0.0)


def moves_on(service: ChaosService, people: People) -> bool:
    """Return whether three more answers are accepted and settled."""
    answers, settled = len(people.accepted) + 3, service.status().labels.answered + 3
    accepted = wait_for(lambda: len(people.accepted) >= answers)
    return accepted and wait_for(lambda: service.status().labels.answered >= settled)


def rebuild(service: ChaosService, report: Report) -> None:
    """Check that a damaged checkpoint raises an alarm, and can be rebuilt from the log."""
    service.stop()
    # The learner of a killed server may still save its last turn.
    with exclusive_lock(service.live / LOCK_FILE, PATIENCE):
        for file in (service.live / "checkpoints").glob("turn-*"):
            file.write_bytes(b"damaged")
    service.start()
    told = wait_for(lambda: any("has stopped" in alarm.text for alarm in service.status().alarms))
    service.stop()
    command = [sys.executable, "-m", "attakit", "rebuild", "live"]
    # The folder knows the address of a PostgreSQL without its password.
    known = {**os.environ, **({"ATTAKIT_DATABASE": service.database} if service.database else {})}
    done = subprocess.run(
        command, cwd=service.folder, env=known, capture_output=True, text=True, check=False
    )
    service.start()
    turn = service.status().turn
    learns = wait_for(lambda: service.status().turn > turn)
    first = (done.stdout or done.stderr).strip().splitlines()[:1]
    report.check(told and done.returncode == 0 and learns, f"damaged checkpoint: alarm, {first}")


def examine(service: ChaosService, people: People, report: Report) -> None:
    """Check the database of the stopped service."""
    sys.path.insert(0, str(service.folder))
    settings = find_settings(service.live)
    with open_service(settings, database=service.database) as storage:
        kept = {
            question: [one.label for one in storage.questions.answers(question)]
            for question in people.accepted
        }
        lost = [one for one, label in people.accepted.items() if kept[one] != [label]]
        text = f"answers: {len(people.accepted)} accepted, {len(lost)} lost"
        report.check(not lost and len(people.accepted) > 0, text)
        counted = labels_body(storage.questions.counts(), settings.labels)
        decode = Inputs(settings.input).decode
        learner = LiveLearner(settings, storage, source_model(settings), decode)
        learner.resume()
        left = as_number(learner.memory.left)
        text = f"budget: {counted.asked} asked, {counted.left} left, the learner's account {left}"
        report.check(counted.left == left and left >= 0, text)


def play(folder: Path, database: str | None, options: argparse.Namespace, report: Report) -> None:
    with ChaosService(folder, database) as service:
        if service.disk is None:
            print("skip full disk: only root can mount a small one")
        service.start()
        with People(service) as people:
            wait_for(lambda: len(people.accepted) > 0)
            kill_often(service, options.kills, random.Random(options.seed))
            faults = Faults(service)
            attack(service, faults, report)
            suffer(service, faults, report)
            turn_back(service, people, report)
            rebuild(service, report)
        service.stop()
        killed = service.killed
        text = f"{killed.total()} SIGKILLs, {killed['learner']} of them of the learner"
        report.check(killed.total() >= options.kills and killed["learner"] > 0, text)
        examine(service, people, report)


@contextmanager
def database_of(kind: str, folder: Path) -> Iterator[str | None]:
    if kind == "sqlite":
        yield None
    else:
        with postgres(folder / "postgres") as url:
            yield url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--kills", type=int, default=6, help="SIGKILLs on each database")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    report = Report()
    for kind in options.databases:
        began = time.monotonic()
        print(f"{kind}:", flush=True)
        with (
            TemporaryDirectory(prefix="attakit-chaos-", ignore_cleanup_errors=True) as place,
            database_of(kind, Path(place)) as url,
        ):
            folder = Path(place, "service")
            folder.mkdir()
            play(folder, url, options, report)
        print(f"     {time.monotonic() - began:.0f} s")
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
