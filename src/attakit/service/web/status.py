"""/v1/status and /v1/series for the dashboard; /healthz and /readyz for operators."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from attakit.client.bodies import HealthBody, Problem
from attakit.client.dashboard_bodies import SeriesBody, StatusBody
from attakit.service.web.errors import documented, refuse
from attakit.service.web.security import Labelling
from attakit.service.web.state import Service

router = APIRouter(tags=["operation"])

_NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {"model": Problem, "description": "Not ready yet"}
}


@router.get("/v1/status", responses=documented(), summary="How the service is doing")
def status(service: Service, _caller: Labelling) -> StatusBody:
    """Throughput, labels, accuracy with its interval, alarms."""
    return service.health.complete(service.overview.status)


@router.get("/v1/series", responses=documented(), summary="Numbers along time")
def series(
    service: Service,
    _caller: Labelling,
    points: Annotated[int, Query(ge=1, le=2000, description="How many turns at most")] = 200,
    seconds: Annotated[
        float | None,
        Query(gt=0, le=1e10, description="How far back; if not given, the newest turns"),
    ] = None,
) -> SeriesBody:
    """Entropy, drift, labels and accuracy for turns of the learner, oldest first."""
    return service.overview.series(points, seconds)


@router.get("/healthz", summary="Whether the server runs")
async def healthy() -> HealthBody:
    """It does, if this is answered."""
    return HealthBody(status="ok")


@router.get("/readyz", responses=_NOT_READY, summary="Whether predictions can be answered")
async def ready(service: Service) -> HealthBody:
    """A model is loaded. `degraded`: predictions are answered, but something cannot be stored."""
    if not service.predictor.ready:
        raise refuse(503, "No model is loaded yet. Try again in a moment.", retry_after=1)
    problems = service.health.problems()
    return HealthBody(status="degraded" if problems else "ok", problems=problems)
