"""What endpoints work with; made once by `create_app`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends
from starlette.requests import Request

from attakit.service.inputs import Inputs
from attakit.service.predictor import Predictor
from attakit.service.storage import Storage
from attakit.service.web.metrics import Metrics
from attakit.service.web.overview import Overview
from attakit.service.web.security import Guard
from attakit.service.web.writer import SampleWriter
from attakit.settings.service import ServiceSettings


@dataclass(frozen=True)
class AppState:
    """All that an endpoint may need."""

    storage: Storage
    predictor: Predictor
    settings: ServiceSettings
    clock: Callable[[], float]
    inputs: Inputs
    writer: SampleWriter
    guard: Guard
    overview: Overview
    metrics: Metrics
    predicting: CapacityLimiter  # requests that are decoded or answered at the same time


def parts_of(request: Request) -> AppState:
    """The parts of the app that a request came to."""
    parts = request.app.state.parts
    assert isinstance(parts, AppState)
    return parts


async def _parts(request: Request) -> AppState:
    return parts_of(request)


Service = Annotated[AppState, Depends(_parts)]
