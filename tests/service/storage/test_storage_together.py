"""Several people in processes of their own, left to finish or killed at random moments."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import create_engine, text

import answering_people
import attakit
from service_records import ask

PEOPLE = ("Ada", "Bob", "Cid", "Dan")


class Person:
    """Someone at work, and what they told so far."""

    def __init__(self, way, url, name, folder):
        self.told = folder / name
        with self.told.open("w") as told:
            self.process = subprocess.Popen(
                [sys.executable, answering_people.__file__, way, url, name],
                stdout=told,
                env={**os.environ, "PYTHONPATH": str(Path(attakit.__file__).parents[1])},
            )

    def wait_for_words(self):
        deadline = time.monotonic() + 60
        while not self.told.stat().st_size:
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def wait(self):
        assert self.process.wait(timeout=120) == 0

    def kill(self):
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL

    def lines(self):
        return [line.split() for line in self.told.read_text().splitlines()]


@pytest.fixture
def start(tmp_path, database):
    """Starts people, and sees to it that none is left."""
    running = []

    def start_all(way, names):
        folder = tmp_path / "told"
        folder.mkdir(exist_ok=True)
        people = [Person(way, database, name, folder) for name in names]
        running.extend(people)
        return people

    yield start_all
    for person in running:
        person.process.kill()
        person.process.wait()


def test_no_question_is_held_by_two_lost_or_answered_twice(storage, start):
    numbers = ask(storage, *[str(number) for number in range(200)], at=time.time())

    people = start("all", PEOPLE)
    for person in people:
        person.wait()
    lines = [line for person in people for line in person.lines()]

    held = defaultdict(list)
    for what, number, *rest in lines:
        if what == "held":
            held[int(number)].append([float(time) for time in rest])
    assert sorted(held) == list(numbers)
    for spans in held.values():
        assert all(end <= begin for (_, end), (begin, _) in pairwise(sorted(spans)))
    assert Counter(line[0] for line in lines)["conflict"] == 0

    undone = {key for what, _, *rest in lines if what == "undone" for key in rest}
    accepted = [line[1:] for line in lines if line[0] == "accepted" and line[2] not in undone]
    assert sorted(int(number) for number, _ in accepted) == list(numbers)
    votes = {number: storage.questions.answers(number) for number in numbers}
    assert all(sum(not one.withdrawn for one in given) == 1 for given in votes.values())
    assert sum(len(given) for given in votes.values()) == len(accepted) + len(undone)
    assert undone


def test_what_was_accepted_survives_being_killed(storage, database, start):
    ask(storage, *[str(number) for number in range(20)])
    result = Random(0)
    printed = set()
    for attempt in range(3):
        people = start("for-ever", [f"{name}{attempt}" for name in PEOPLE])
        for person in people:
            person.wait_for_words()
            time.sleep(result.uniform(0, 0.15))
            person.kill()
            lines = person.lines()
            assert {outcome for outcome, _, _ in lines} == {"accepted"}
            printed |= {(int(number), key) for _, number, key in lines}

    kept = run(database, "SELECT question, key FROM answers")
    told = run(database, "SELECT number FROM events WHERE kind = 'answer'")
    assert len(printed) > 12
    assert printed <= {tuple(row) for row in kept}
    assert len(kept) <= len(printed) + 12  # each may have been killed between commit and print
    assert len(told) == len(kept)
    (number,) = ask(storage, "one more")
    assert storage.questions.answer(number, "Eve", "label", 3, "still works") == "accepted"


def run(url, query):
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(text(query)).all()
    engine.dispose()
    return rows
