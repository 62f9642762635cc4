"""create_app: the service as an ASGI app."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI

from attakit import __version__
from attakit.service.inputs import Inputs
from attakit.service.predictor import Predictor
from attakit.service.storage import Storage
from attakit.service.web import (
    comparing,
    contents,
    errors,
    exchange,
    guide,
    insights,
    metrics,
    predict,
    questions,
    samples,
    status,
    versions,
)
from attakit.service.web.buckets import TokenBuckets
from attakit.service.web.examples import Examples
from attakit.service.web.gathering import Gathering
from attakit.service.web.health import Health
from attakit.service.web.limits import BodyLimits, ByteLimit, Limits
from attakit.service.web.login import login_router, visitor_of
from attakit.service.web.metrics import Metrics
from attakit.service.web.observing import Observing
from attakit.service.web.overview import Overview
from attakit.service.web.pages import Pages, error_page, pages_router
from attakit.service.web.predicting import answer_together
from attakit.service.web.security import Guard
from attakit.service.web.state import AppState
from attakit.service.web.storage_watch import StorageWatch
from attakit.service.web.traffic_log import TrafficLog
from attakit.service.web.uploads import describe_upload, example_input
from attakit.service.web.writer import SampleWriter
from attakit.service.webhook import Webhook
from attakit.service.worker import Worker
from attakit.settings.service import ServerTable, ServiceSettings

_ROUTERS = (
    predict,
    samples,
    contents,
    questions,
    guide,
    status,
    insights,
    versions,
    comparing,
    exchange,
    metrics,
)
_DESCRIPTION = (
    "A classifier that answers at once, asks people about a few useful samples, learns from "
    'their answers, and promotes versions that prove themselves. Errors are `{"error": "…"}`.'
)
_SHARES = 4  # one client may hold this fraction of the memory for bodies
_PREDICTING = 64  # large requests that are decoded or wait for the model at the same time
_TOGETHER = 32  # small requests that are answered together at most


def create_app(
    storage: Storage,
    predictor: Predictor,
    settings: ServiceSettings,
    *,
    clock: Callable[[], float] = time.time,
    learning: Callable[[], bool] = lambda: True,
) -> FastAPI:
    """Build the ASGI app of a service. The caller closes storage and predictor afterwards.

    `clock` returns the time of day; `learning` returns True if the learner is alive.
    """
    state = _make_state(storage, predictor, settings, clock, learning)
    app = FastAPI(
        title="attakit",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.service = state
    pages = Pages()
    routes = [route for module in _ROUTERS for route in module.router.routes]
    errors.install(app, partial(error_page, pages), routes)
    for module in _ROUTERS:
        app.include_router(module.router)
    _describe(app, settings)
    app.include_router(login_router(pages))
    example = example_input(settings.input)
    app.include_router(pages_router(visitor_of, app.openapi, pages, example=example))
    server = settings.server
    app.add_middleware(
        Limits,
        guard=state.guard,
        known=TokenBuckets(server.requests_per_minute),
        unknown=TokenBuckets(server.unknown_per_minute),
        bodies=_body_limits(server),
    )
    app.add_middleware(Observing, metrics=state.metrics)
    return app


def _body_limits(server: ServerTable) -> BodyLimits:
    largest = round(server.request_megabytes * 1e6)
    # A limit below the largest request would always reject that request.
    held = max(round(server.held_megabytes * 1e6), largest)
    return BodyLimits(
        upload=largest,
        held=ByteLimit(held, share=max(held // _SHARES, largest)),
        seconds=server.body_seconds,
        rate=server.body_kilobytes_per_second * 1e3,
    )


def _make_state(
    storage: Storage,
    predictor: Predictor,
    settings: ServiceSettings,
    clock: Callable[[], float],
    learning: Callable[[], bool],
) -> AppState:
    measured = Metrics(clock)
    traffic = TrafficLog(measured.traffic, storage.traffic, clock)
    overview = Overview(
        storage,
        settings,
        clock=clock,
        learning=learning,
        answering=lambda: predictor.version if predictor.ready else None,
        traffic=traffic.newest,
    )
    health = Health(clock)
    writer = SampleWriter(storage.samples, health=health)
    measured.include_storage(health, lambda: writer.waiting)
    measured.include_status(overview)
    predictor.on_batch = measured.count_batch
    state = AppState(
        storage=storage,
        predictor=predictor,
        settings=settings,
        clock=clock,
        inputs=Inputs(settings.input, pixels=settings.server.pixels),
        writer=writer,
        guard=Guard(
            storage.tokens,
            storage.key_values,
            is_open=settings.server.open,
            shared=storage.is_shared,
            clock=clock,
        ),
        overview=overview,
        metrics=measured,
        traffic=traffic,
        examples=Examples(settings.labelling, settings.classes),
        health=health,
        predicting=CapacityLimiter(_PREDICTING),
    )
    state.gathering = Gathering(partial(answer_together, state), most=_TOGETHER)
    return state


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: AppState = app.state.service
    watch = StorageWatch(service.storage, service.settings.folder, service.health, service.clock)
    workers: list[Worker] = [service.overview, service.writer, service.traffic, watch]
    if url := service.settings.labels.webhook:
        storage = service.storage
        sender = storage.claim("webhook")  # only one of the servers sends
        workers.append(Webhook(url, storage.questions, storage.key_values, role=sender))
    for worker in workers:
        worker.start()
    yield
    service.gathering.close()
    for worker in reversed(workers):
        await to_thread.run_sync(worker.stop)


def _describe(app: FastAPI, settings: ServiceSettings) -> None:
    """Add the parts that depend on the settings to the OpenAPI description."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        description = plain()
        body = describe_upload(settings.input, settings.server.inputs_per_request)
        description["paths"]["/v1/predict"]["post"]["requestBody"] = body
        return description

    app.openapi = openapi  # type: ignore[method-assign]
