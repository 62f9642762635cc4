"""GET /metrics: numbers for Prometheus, in a separate registry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from attakit.errors import StateError
from attakit.service.web.errors import documented
from attakit.service.web.health import Health
from attakit.service.web.overview import Overview
from attakit.service.web.security import Known
from attakit.service.web.traffic import Traffic

router = APIRouter(tags=["operation"])

_PREDICT = "/v1/predict"
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters and histograms of the server.

    >>> metrics = Metrics()
    >>> metrics.count_inputs(3)
    >>> b"attakit_inputs_total 3.0" in metrics.text()
    True
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        registry = CollectorRegistry()
        self.registry = registry
        self.traffic = Traffic(clock)
        self._requests = Counter(
            "attakit_requests",
            "Requests by outcome",
            ("method", "route", "status"),
            registry=registry,
        )
        self._latency = Histogram(
            "attakit_request_seconds",
            "Seconds from request to response",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._inputs = Counter("attakit_inputs", "Answered inputs", registry=registry)
        self._batch = Histogram(
            "attakit_batch_size", "Inputs of a forward pass", buckets=_SIZES, registry=registry
        )

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in _METHODS else "other"  # clients may send any name
        if route == _PREDICT:
            self.traffic.note(status, seconds)
        self._requests.labels(known, route, str(status)).inc()
        self._latency.labels(route).observe(seconds)

    def count_inputs(self, count: int) -> None:
        self._inputs.inc(count)

    def count_batch(self, size: int) -> None:
        self._batch.observe(size)

    def include_status(self, overview: Overview) -> None:
        """Add the numbers of the status, read from the database for each request of the metrics."""
        self.registry.register(_StatusCollector(overview))

    def include_storage(self, health: Health, waiting: Callable[[], int]) -> None:
        """Add the faults of the storage; `waiting` returns how many samples are not written."""
        self.registry.register(_StorageCollector(health, waiting))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _StorageCollector(Collector):
    def __init__(self, health: Health, waiting: Callable[[], int]) -> None:
        self._health = health
        self._waiting = waiting

    def collect(self) -> Iterable[Metric]:
        failures = CounterMetricFamily(
            "attakit_storage_failures", "Failed attempts to write", labels=("what",)
        )
        for what in ("samples", "folder", "database"):
            failures.add_metric([what], self._health.failures[what])
        yield failures
        words = "Answered samples that are not stored yet"
        yield GaugeMetricFamily("attakit_samples_waiting", words, value=self._waiting())
        faults = len(self._health.faults())
        yield GaugeMetricFamily("attakit_storage_faults", "Current faults", value=faults)


class _StatusCollector(Collector):
    def __init__(self, overview: Overview) -> None:
        self._overview = overview

    def describe(self) -> Iterable[Metric]:
        return []  # so that registration does not read the database

    def collect(self) -> Iterable[Metric]:
        try:
            status = self._overview.status()
        except StateError:  # the other numbers are still useful
            return
        labels = status.labels
        questions = GaugeMetricFamily("attakit_questions", "Questions by state", labels=("state",))
        for state in ("open", "answered", "skipped", "expired"):
            questions.add_metric([state], getattr(labels, state))
        yield questions
        gauges = {
            "attakit_questions_asked": ("Questions asked so far", labels.asked),
            "attakit_budget_left": ("Questions left in the budget; absent: no limit", labels.left),
            "attakit_version": ("Served version", status.answering),
            "attakit_turn": ("Newest turn of the learner", status.turn),
            "attakit_waiting": ("Samples that the learner has not seen", status.waiting),
            "attakit_learning": ("1 while the learner works", status.learning == "running"),
            "attakit_alarms": ("Newest alarms", len(status.alarms)),
            "attakit_last_alarm_seconds": (
                "Time of the newest alarm",
                status.alarms[0].at if status.alarms else None,
            ),
        }
        for name, (words, value) in gauges.items():
            if value is not None:
                yield GaugeMetricFamily(name, words, value=float(value))


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {CONTENT_TYPE_LATEST: {"schema": {"type": "string"}}}},
        **documented(),
    },
    summary="Numbers for Prometheus",
)
def metrics(request: Request, _caller: Known) -> Response:
    """Return requests, latencies, batch sizes, questions, budget, version and alarms."""
    return Response(request.app.state.service.metrics.text(), media_type=CONTENT_TYPE_LATEST)
