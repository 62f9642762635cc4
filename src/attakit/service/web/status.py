"""/v1/status and /v1/series for the dashboard; /healthz and /readyz for operators."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from attakit.client.bodies import HealthBody, Problem
from attakit.client.dashboard_bodies import SeriesBody, StatusBody, TrafficSeries
from attakit.service.web.errors import documented, refuse
from attakit.service.web.security import Labelling
from attakit.service.web.state import Service

router = APIRouter(tags=["operation"])

Points = Annotated[int, Query(ge=1, le=2000, description="Maximum number of points in time")]

_NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {"model": Problem, "description": "Not ready yet"}
}


@router.get("/v1/status", responses=documented(), summary="State of the service")
def status(service: Service, _caller: Labelling) -> StatusBody:
    """Return throughput, labels, accuracy with its interval, and alarms."""
    return service.health.complete(service.overview.status)


@router.get("/v1/series", responses=documented(), summary="Numbers over time")
def series(
    service: Service,
    _caller: Labelling,
    points: Points = 200,
    seconds: Annotated[
        float | None,
        Query(gt=0, le=1e10, description="Length of the period; by default the newest turns"),
    ] = None,
) -> SeriesBody:
    """Return entropy, drift, labels and accuracy of the learner's turns, oldest first."""
    return service.overview.series(points, seconds)


@router.get("/v1/traffic", responses=documented(), summary="Requests over time")
def traffic(
    service: Service,
    _caller: Labelling,
    points: Points = 120,
    seconds: Annotated[
        float, Query(gt=0, le=1e10, description="Length of the period; eight days are kept")
    ] = 3600.0,
) -> TrafficSeries:
    """Return the prediction requests of all servers: latency, errors and refusals."""
    return TrafficSeries(points=service.traffic.series(points, seconds))


@router.get("/healthz", summary="Check that the server is running")
async def healthy() -> HealthBody:
    """Respond, which shows that the server is running."""
    return HealthBody(status="ok")


@router.get("/readyz", responses=_NOT_READY, summary="Check that the server can predict")
async def ready(service: Service) -> HealthBody:
    """Say that a model is loaded. `degraded` means that something cannot be stored."""
    if not service.predictor.ready:
        raise refuse(503, "No model is loaded yet. Try again in a moment.", retry_after=1)
    problems = service.health.problems()
    return HealthBody(status="degraded" if problems else "ok", problems=problems)
