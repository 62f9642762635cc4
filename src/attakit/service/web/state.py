"""AppState: the objects that endpoints use. `create_app` creates them once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends
from starlette.requests import Request

from attakit.service.inputs import Inputs
from attakit.service.predictor import Predictor
from attakit.service.storage import Storage
from attakit.service.web.examples import Examples
from attakit.service.web.gathering import Gathering
from attakit.service.web.health import Health
from attakit.service.web.metrics import Metrics
from attakit.service.web.overview import Overview
from attakit.service.web.security import Guard
from attakit.service.web.traffic_log import TrafficLog
from attakit.service.web.uploads import Upload
from attakit.service.web.writer import SampleWriter
from attakit.settings.service import ServiceSettings


@dataclass
class AppState:
    """Everything that an endpoint may need."""

    storage: Storage
    predictor: Predictor
    settings: ServiceSettings
    clock: Callable[[], float]
    inputs: Inputs
    writer: SampleWriter
    guard: Guard
    overview: Overview
    metrics: Metrics
    traffic: TrafficLog
    examples: Examples
    health: Health
    predicting: CapacityLimiter  # limits the large requests that are answered at a time
    gathering: Gathering[Upload, bytes] = field(init=False)  # answers the small ones together


def app_state(request: Request) -> AppState:
    """Return the state of the app that received a request."""
    state = request.app.state.service
    assert isinstance(state, AppState)
    return state


async def _service(request: Request) -> AppState:
    return app_state(request)


Service = Annotated[AppState, Depends(_service)]
