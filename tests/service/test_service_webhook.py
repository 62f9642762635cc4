"""The webhook tells of new questions, again after failures, and never twice."""

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from attakit.service.logs import logging_to
from attakit.service.storage import open_storage
from attakit.service.webhook import Webhook
from service_records import ask


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


class KeyValueStore(dict):
    """As much of the storage as the webhook writes to; it may be busy for some writes."""

    busy = 0

    def set(self, name, value):
        if self.busy:
            self.busy -= 1
            raise OSError("The database is busy.")
        self[name] = value


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


class Listener(ThreadingHTTPServer):
    """A program elsewhere that wants to be told; answers with the codes given, then with 204."""

    def __init__(self, codes=()):
        super().__init__(("127.0.0.1", 0), _Listening)
        self.codes = list(codes)
        self.heard = []
        self.address = f"http://127.0.0.1:{self.server_port}/hook?team=a"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}).start()
        return self

    def __exit__(self, *exception):
        self.shutdown()
        super().__exit__(*exception)

    def wait_for(self, count):
        deadline = time.monotonic() + 20
        while len(self.heard) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.heard


class _Listening(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append((self.path, self.headers["Content-Type"], body))
        self.send_response(self.server.codes.pop(0) if self.server.codes else 204)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()

    def log_message(self, *_words):
        pass


@pytest.fixture
def start():
    running = []

    def begin(questions, receiver, key_values=None):
        key_values = KeyValueStore() if key_values is None else key_values
        hook = Webhook(
            "http://localhost:1/",
            questions,
            key_values,
            every=0.005,
            retry_pauses=(0.005,),
            send=receiver,
        )
        hook.start()
        running.append(hook)
        return hook

    yield begin
    for hook in running:
        hook.stop()


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


def test_what_could_not_be_told_is_told_after_a_restart(tmp_path, clock, start):
    down, receiver = Receiver(failures=10**9), Receiver()
    with open_storage(tmp_path, clock=clock) as storage:
        ask(storage, "before the first start")
        hook = start(storage.questions, down, storage.key_values)
        ask(storage, "a", "b")
        time.sleep(0.05)
        hook.stop()
    with open_storage(tmp_path, clock=clock) as storage:
        hook = start(storage.questions, receiver, storage.key_values)
        assert receiver.told.wait(5)
        hook.stop()

    assert receiver.bodies == [{"event": "questions", "new": 2, "newest": 3, "open": 3}]


def test_what_was_told_is_not_told_again_after_a_restart(start):
    questions, key_values, receiver = Questions(), KeyValueStore(), Receiver()
    hook = start(questions, receiver, key_values)
    questions.newest = 3
    assert receiver.told.wait(5)
    hook.stop()

    start(questions, receiver, key_values)
    time.sleep(0.05)

    assert len(receiver.bodies) == 1


def test_a_database_that_is_busy_lets_nothing_be_told_twice(start):
    questions, key_values, receiver = Questions(), KeyValueStore(), Receiver()
    hook = start(questions, receiver, key_values)
    key_values.busy = 3

    questions.newest = 3
    assert receiver.told.wait(5)
    time.sleep(0.05)
    hook.stop()

    assert (len(receiver.bodies), key_values.busy, list(key_values.values())) == (1, 0, [3])


def test_a_real_server_is_told_of_real_questions(tmp_path, clock):
    with Listener() as listener, open_storage(tmp_path, clock=clock) as storage:
        hook = Webhook(listener.address, storage.questions, storage.key_values, every=0.01)
        hook.start()
        ask(storage, "a", "b")
        heard = listener.wait_for(1)
        hook.stop()

    path, kind, body = heard[0]
    assert (path, kind) == ("/hook?team=a", "application/json")
    told = sum(one["new"] for _, _, one in heard)
    assert (body["event"], told, heard[-1][2]["newest"]) == ("questions", 2, 2)


def test_a_real_server_that_fails_or_sends_elsewhere_is_told_again():
    questions = Questions()
    with Listener(codes=[500, 302]) as listener:
        hook = Webhook(
            listener.address, questions, KeyValueStore(), every=0.01, retry_pauses=(0.01,)
        )
        hook.start()
        questions.newest = 4
        heard = listener.wait_for(3)
        hook.stop()

    bodies = [body for _, _, body in heard]
    assert bodies == [{"event": "questions", "new": 2, "newest": 4, "open": 1}] * 3


@pytest.mark.parametrize("codes", [[204], [500, 404, 302, 204]])
def test_the_log_tells_the_host_and_nothing_else_of_the_address(codes, untouched_logging, tmp_path):
    questions, log = Questions(), tmp_path / "service.log"
    with logging_to(log), Listener(codes) as listener:
        secret = listener.address.replace("//", "//ada:secret@").replace("team=a", "token=secret")
        hook = Webhook(secret, questions, KeyValueStore(), every=0.01, retry_pauses=(0.01,))
        hook.start()
        questions.newest = 4
        listener.wait_for(len(codes))
        hook.stop()

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert "secret" not in log.read_text()
    assert [(line["host"], line["error"]) for line in lines] == [
        ("127.0.0.1", f"it answered with status {code}") for code in codes if code != 204
    ]
