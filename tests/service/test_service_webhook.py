"""The webhook tells of new questions, again after failures, and never twice."""

import threading
import time
from dataclasses import dataclass

import pytest

from attakit.errors import SettingError
from attakit.service.webhook import Webhook


@dataclass
class Row:
    question: int


class Questions:
    """As much of the storage as the webhook looks at."""

    def __init__(self):
        self.newest = 2

    def recent(self, limit):
        return (Row(self.newest),) if self.newest else ()

    def counts(self):
        return type("Counts", (), {"open": 1})


class Receiver:
    def __init__(self, failures=0):
        self.failures = failures
        self.bodies = []
        self.told = threading.Event()

    def __call__(self, url, body):
        if self.failures:
            self.failures -= 1
            raise OSError("not there")
        self.bodies.append(body)
        self.told.set()


@pytest.fixture
def start():
    running = []

    def begin(questions, receiver):
        hook = Webhook(
            "http://localhost:1/", questions, every=0.005, pauses=(0.005,), send=receiver
        )
        running.append(hook)
        return hook

    yield begin
    for hook in running:
        hook.close()


def test_only_new_questions_are_told_and_once(start):
    questions, receiver = Questions(), Receiver()
    start(questions, receiver)
    time.sleep(0.05)
    assert receiver.bodies == []

    questions.newest = 5

    assert receiver.told.wait(5)
    time.sleep(0.05)
    assert receiver.bodies == [{"event": "questions", "new": 3, "newest": 5, "open": 1}]


def test_what_could_not_be_told_is_told_later(start):
    questions, receiver = Questions(), Receiver(failures=3)
    start(questions, receiver)

    questions.newest = 3

    assert receiver.told.wait(5)
    assert receiver.bodies[0]["new"] == 1
    assert receiver.failures == 0


@pytest.mark.parametrize("url", ["ftp://a", "localhost", "file:///etc/passwd", ""])
def test_other_addresses_are_refused(url):
    with pytest.raises(SettingError, match="http or https"):
        Webhook(url, Questions())
