"""Requests over time: counted by each server, written down, and read together."""

import pytest

from attakit.errors import StateError
from attakit.service.storage import open_storage
from attakit.service.web.traffic import PERIOD, Traffic
from attakit.service.web.traffic_log import TrafficLog


class Server:
    """A server's counts on a storage, with a clock that all servers share."""

    def __init__(self, storage, now):
        self.traffic = Traffic(lambda: now[0])
        self.log = TrafficLog(self.traffic, storage.traffic, lambda: now[0])

    def answer(self, *statuses, seconds=0.1):
        for status in statuses:
            self.traffic.note(status, seconds)


@pytest.fixture
def now():
    return [300 * PERIOD]


@pytest.fixture
def storage(tmp_path, database):
    with open_storage(tmp_path, database) as opened:
        yield opened


def counts(points):
    return [(one.at / PERIOD, one.requests, one.failed, one.refused) for one in points]


def test_servers_are_counted_together_before_and_after_a_restart(storage, now):
    first, second = Server(storage, now), Server(storage, now)
    first.answer(200, 200, 503)
    second.answer(200, 429)
    now[0] += PERIOD
    first.log.run_once()
    second.log.run_once()
    second.answer(200)

    assert counts(second.log.series(200, 3600)) == [(300, 5, 1, 1), (301, 1, 0, 0)]
    assert counts(Server(storage, now).log.series(200, 3600)) == [(300, 5, 1, 1)]
    assert second.log.newest().requests == 6


def test_latency_is_that_of_successful_requests(storage, now):
    server = Server(storage, now)
    server.answer(*[200] * 90, seconds=0.02)
    server.answer(*[200] * 10, seconds=0.5)
    server.answer(503, seconds=9.0)

    (point,) = server.log.series(10, 60)
    assert point.median == pytest.approx(0.02, rel=0.03)
    assert point.slowest == pytest.approx(0.5, rel=0.03)


def test_a_long_time_has_no_more_points_than_wanted_and_gaps_are_empty(storage, now):
    server = Server(storage, now)
    for _ in range(3):
        server.answer(200)
        now[0] += 100 * PERIOD

    points = server.log.series(4, 400 * PERIOD)
    assert [one.requests for one in points] == [1, 1, 1]
    assert [one.requests for one in server.log.series(8, 400 * PERIOD)] == [1, 0, 1, 0, 1]
    assert server.log.series(8, 400 * PERIOD)[1].median is None


def test_old_requests_are_not_now_and_in_the_end_removed(storage, now):
    server = Server(storage, now)
    server.answer(500)
    now[0] += PERIOD
    server.log.run_once()
    now[0] += 11 * PERIOD
    assert server.log.newest().requests == 0
    assert len(server.log.series(100, 1e9)) == 1

    now[0] += 9 * 86_400
    server.answer(200)
    now[0] += PERIOD
    server.log.run_once()
    assert counts(server.log.series(100, 1e9))[0][1:] == (1, 0, 0)
    assert len(storage.traffic.since(0.0)) == 1


def test_a_clock_that_is_set_back_loses_nothing(storage, now):
    server = Server(storage, now)
    for _ in range(2):
        now[0] = 300 * PERIOD
        server.answer(200)
        now[0] = 301 * PERIOD
        server.log.run_once()

    assert counts(server.log.series(200, 3600)) == [(300, 2, 0, 0)]


def test_what_cannot_be_written_waits_for_an_hour(storage, now, monkeypatch):
    server = Server(storage, now)

    def full(*_words, **_more):
        raise StateError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(storage.traffic, "add", full)
        for _ in range(130):
            server.answer(200)
            now[0] += PERIOD
            with pytest.raises(StateError):
                server.log.run_once()

    server.log.run_once()
    assert len(storage.traffic.since(0.0)) == 120


def test_the_chart_of_requests_is_read_over_http(start, database):
    live = start(address=database)
    live.serve(1)
    live.client.post("/v1/predict", json={})

    (point,) = live.client.get("/v1/traffic?seconds=600").json()["points"]
    assert (point["requests"], point["refused"], point["failed"]) == (2, 1, 0)
    assert point["at"] <= live.clock() < point["at"] + point["seconds"]
    assert live.client.get("/v1/traffic?seconds=0").status_code == 422
