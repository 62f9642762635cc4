"""Hostile and slow clients at a real address: others are answered within a second throughout."""

import http.client
import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest

from attakit.service.serve import uvicorn_config
from attakit.service.web.connections import LONGEST_HEAD
from live_site import serving

MOST = 40  # connections
SECOND = 1.0

# Beside other tests a second is no fair limit.
pytestmark = pytest.mark.alone


class Target:
    """A running service, its address and a token."""

    def __init__(self, live, address, bounds):
        self.bounds = bounds
        self.host, _, port = address.removeprefix("http://").partition(":")
        self.port = int(port)
        self.token = live.storage.tokens.create("camera", "predict")

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=5)

    def request(self, method, path, body=None, *, known=False):
        """Status and seconds of a request on a connection of its own."""
        headers = {"Authorization": f"Bearer {self.token}"} if known else {}
        headers |= {"Content-Type": "application/json"} if body else {}
        began = time.monotonic()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request(method, path, body, headers)
            return connection.getresponse().status, time.monotonic() - began
        finally:
            connection.close()

    def predict(self):
        return self.request("POST", "/v1/predict", b'{"arrays": [[1, 2, 3, 4]]}', known=True)


@contextmanager
def watched(target):
    """Inside, somebody asks for health and predictions; all must be answered within a second."""
    seen, done = [], threading.Event()

    def ask():
        while not done.wait(0.02):
            try:
                seen.extend([target.request("GET", "/healthz"), target.predict()])
            except OSError as error:
                seen.append((error, 0.0))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
        wait_for_more(seen)
    finally:
        done.set()
        thread.join()
    assert {status for status, _ in seen} == {200}
    assert max(seconds for _, seconds in seen) < SECOND


def wait_for_more(seen):
    """Until some further requests were answered."""
    until = len(seen) + 6
    while len(seen) < until:
        time.sleep(0.01)


@pytest.fixture
def target(start, array_model):
    """A service with tokens and short limits."""
    live = start(
        input={"kind": "array", "shape": (4,)},
        model=array_model,
        server={
            "host": "0.0.0.0",
            "request_megabytes": 20,
            "held_megabytes": 20,
            "connections": MOST,
            "head_seconds": 0.5,
            "body_seconds": 0.5,
            "unknown_per_minute": 60_000,
        },
    )
    config = uvicorn_config(live.client.app, live.state.settings.server)
    config.lifespan = "off"  # the client of the fixture began it already
    with serving(config) as address:
        target = Target(live, address, config.bounds)
        assert target.predict()[0] == 200  # what happens only once has happened
        yield target


def is_closed(connection):
    """Whether the server closes a connection within some seconds."""
    connection.settimeout(5)
    with suppress(ConnectionError):
        while connection.recv(65_536):
            pass
    return True


def head(path, length):
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize("path", ["/login", "/v1/predict", "/v1/questions/1/answer"])
def test_bodies_of_unknown_callers_take_no_room(target, path):
    with ExitStack() as stack, watched(target):
        for _ in range(30):
            connection = stack.enter_context(target.connect())
            with suppress(ConnectionError):
                connection.sendall(head(path, 1_000_000) + b"x" * 999_000)


ENDLESS = {
    "lines": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"name: " + b"a" * 94 + b"\r\n"),
    "one line": (b"GET /healthz HTTP/1.1\r\nHost: x\r\nname: ", b"a" * 100),
    "address": (b"GET /", b"a" * 100),
    "trailers": (
        b"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
        b"name: " + b"a" * 94 + b"\r\n",
    ),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_head_without_end_is_cut_off(target, kind):
    start, more = ENDLESS[kind]
    with target.connect() as connection, watched(target):
        connection.sendall(start)
        sent = 0
        with suppress(ConnectionError):
            while sent < 100 * LONGEST_HEAD:
                connection.sendall(more * 100)
                sent += 100 * len(more)

        assert sent < 100 * LONGEST_HEAD


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nhost: b\r\n", 400),
    ],
    ids=["one", "old", "none", "two"],
)
def test_a_request_names_one_host(target, head, code):
    with target.connect() as connection:
        connection.sendall(head + b"Connection: close\r\n\r\n")

        assert connection.recv(1000).startswith(b"HTTP/1.1 %d" % code)


def test_a_long_head_within_the_limit_is_answered(target):
    with target.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nn: " + b"a" * 60_000 + b"\r\n\r\n")

        assert connection.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "text",
    [
        b'{"images": [' + b'"",' * 6_300_000 + b'""]}',
        b'{"arrays": [' + b"1," * 9_000_000 + b"1]}",
        b'{"arrays": ' + b"[" * 19_000_000,
        b'{"arrays": [' + b" " * 19_000_000 + b"1]}",
    ],
    ids=["images", "arrays", "brackets", "spaces"],
)
def test_a_large_text_delays_no_one(target, text):
    with watched(target):
        status, _ = target.request("POST", "/v1/predict", text, known=True)

    assert status in (413, 422)


def test_a_large_honest_request_delays_no_one(start, target):
    numbers = json.dumps({"arrays": [[0.123456789] * 4] * 256}).encode()

    with watched(target):
        for _ in range(10):
            assert target.request("POST", "/v1/predict", numbers, known=True)[0] == 200


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /he", b"GET /healthz HTTP/1.1\r\nHost: x\r\n", head("/login", 100) + b"x"],
    ids=["nothing", "a line", "a head", "a body"],
)
def test_slow_clients_make_room_for_others_and_are_ended(target, sent):
    with ExitStack() as stack, watched(target):
        slow = []
        for _ in range(3 * MOST):
            slow.append(stack.enter_context(target.connect()))
            with suppress(ConnectionError):
                slow[-1].sendall(sent)

        assert all(is_closed(one) for one in slow)


def test_a_known_caller_who_sends_slowly_is_ended(target):
    line = f"Authorization: Bearer {target.token}\r\nContent-Type: application/json\r\n"
    start = head("/v1/predict", 1000).replace(b"Host: x\r\n", f"Host: x\r\n{line}".encode())

    with target.connect() as connection, watched(target):
        connection.sendall(start + b"{")

        assert connection.recv(100).startswith(b"HTTP/1.1 408")
        assert is_closed(connection)


def test_a_client_who_reads_no_answer_is_ended(target):
    with target.connect() as connection, watched(target):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        with suppress(ConnectionError, TimeoutError):
            for _ in range(400):
                connection.sendall(b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n")

        time.sleep(2.0)
        assert len(target.bounds) <= 2
