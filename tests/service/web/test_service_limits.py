"""How often one client may ask, and how much may come at the same time."""

import asyncio
import json

import pytest

from attakit.service.web.buckets import TokenBuckets


class Seconds:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_burst_is_allowed_and_then_the_rate():
    seconds = Seconds()
    buckets = TokenBuckets(60, burst=3, ticks=seconds)

    first = [buckets.wait("a") for _ in range(4)]
    seconds.now = 0.5
    early = buckets.wait("a")
    seconds.now = 1.0
    later = buckets.wait("a")

    assert first == [0.0, 0.0, 0.0, 1.0]
    assert early == 0.5
    assert later == 0.0


def test_clients_do_not_share_a_bucket():
    buckets = TokenBuckets(60, burst=1, ticks=Seconds())

    assert buckets.wait("a") == 0.0
    assert buckets.wait("b") == 0.0
    assert buckets.wait("a") > 0


def test_saved_up_requests_are_bounded():
    seconds = Seconds()
    buckets = TokenBuckets(60, burst=2, ticks=seconds)
    buckets.wait("a")
    seconds.now = 1e6

    assert [buckets.wait("a") > 0 for _ in range(3)] == [False, False, True]


def test_only_so_many_clients_are_remembered():
    buckets = TokenBuckets(60, burst=1, ticks=Seconds(), clients=100)

    for number in range(1000):
        buckets.wait(str(number))

    assert len(buckets._buckets) == 100
    assert buckets.wait("999") > 0


class Call:
    """A prediction that is asked for piece by piece."""

    def __init__(self, app, announced=None, peer="127.0.0.1"):
        lengths = [] if announced is None else [(b"content-length", b"%d" % announced)]
        kind = (b"content-type", b"application/json")
        self.pieces = asyncio.Queue()
        self.sent = []
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/predict",
            "raw_path": b"/v1/predict",
            "root_path": "",
            "query_string": b"",
            "scheme": "http",
            "http_version": "1.1",
            "client": (peer, 50_000),
            "server": ("127.0.0.1", 8000),
            "headers": [(b"host", b"localhost"), kind, *lengths],
        }
        self.task = asyncio.create_task(app(scope, self.pieces.get, self.keep))

    async def keep(self, message):
        self.sent.append(message)

    async def send(self, body, *, more=True):
        """Send a piece, and wait until it was read."""
        await self.pieces.put({"type": "http.request", "body": body, "more_body": more})
        while not self.pieces.empty() and not self.task.done():
            await asyncio.sleep(0.001)

    async def answer(self):
        """Status, headers and error."""
        await asyncio.wait_for(self.task, 20)
        head, *bodies = self.sent
        content = json.loads(b"".join(message["body"] for message in bodies))
        return head["status"], dict(head["headers"]), content["error"]


@pytest.fixture
def app(start):
    """Of a service that holds ten thousand bytes at most."""
    live = start(server={"request_megabytes": 0.008, "held_megabytes": 0.01})
    return live.client.app


def test_what_is_announced_beyond_the_room_for_bodies_is_refused_unread(app):
    async def play():
        first = Call(app)
        await first.send(b"x" * 8_000)
        second = Call(app, announced=3_000, peer="127.0.0.2")
        refused = await second.answer()
        first.task.cancel()
        return refused

    status, headers, error = asyncio.run(play())

    assert status == 503
    assert headers[b"retry-after"] == b"1"
    assert "Try again" in error


def test_what_comes_unannounced_beyond_the_room_for_bodies_is_cut_off(app):
    async def play():
        first, second = Call(app), Call(app, peer="127.0.0.2")
        await first.send(b"x" * 6_000)
        await second.send(b"x" * 3_000)
        await second.send(b"x" * 3_000)
        refused = await second.answer()
        await first.send(b"x", more=False)
        return refused, await first.answer()

    (status, headers, _), first = asyncio.run(play())

    assert (status, headers[b"retry-after"]) == (503, b"1")
    assert first[0] == 400  # read to its end; it is no JSON


def test_one_client_leaves_room_for_others(start):
    server = {"request_megabytes": 0.003, "held_megabytes": 0.012}
    app = start(server=server).client.app

    async def play():
        first = Call(app)
        await first.send(b"x" * 2_000)
        same = Call(app, announced=2_000)
        other = Call(app, announced=2_000, peer="127.0.0.2")
        await other.send(b"x" * 2_000, more=False)
        statuses = [(await one.answer())[0] for one in (same, other)]
        first.task.cancel()
        return statuses

    assert asyncio.run(play()) == [503, 400]


def test_a_body_that_comes_too_slowly_is_refused(start):
    app = start(server={"body_seconds": 0.05, "body_kilobytes_per_second": 1000}).client.app

    async def play():
        call = Call(app, announced=2_000)
        await call.send(b"x" * 1_000)
        return await call.answer()

    status, headers, error = asyncio.run(play())

    assert (status, headers[b"connection"]) == (408, b"close")
    assert "arrived too slowly" in error


@pytest.mark.parametrize("ended", ["answered", "left", "too large"])
def test_a_request_that_is_over_gives_its_room_back(app, ended):
    async def play():
        for _ in range(3):
            one = Call(app)
            await one.send(b"x" * 7_000, more=ended != "answered")
            if ended == "left":
                await one.pieces.put({"type": "http.disconnect"})
            elif ended == "too large":
                await one.send(b"x" * 2_000)
            await asyncio.wait([one.task])
        last = Call(app, announced=8_000)
        await last.send(b"x" * 8_000, more=False)
        return await last.answer()

    assert asyncio.run(play())[0] == 400


def test_what_is_announced_and_does_not_come_keeps_nobody_out(app):
    async def play():
        idle = [Call(app, announced=8_000) for _ in range(5)]
        await asyncio.sleep(0.05)
        busy = Call(app, announced=8_000)
        await busy.send(b"x" * 8_000, more=False)
        answer = await busy.answer()
        for one in idle:
            one.task.cancel()
        return answer

    assert asyncio.run(play())[0] == 400


def test_the_largest_request_always_has_room(start):
    app = start(server={"request_megabytes": 0.02, "held_megabytes": 0.01}).client.app

    async def play():
        call = Call(app, announced=20_000)
        await call.send(b"x" * 20_000, more=False)
        return await call.answer()

    assert asyncio.run(play())[0] == 400
