"""POST /v1/predict: answer inputs with the promoted model."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from attakit.client.bodies import Predictions
from attakit.service.storage.rows import Role
from attakit.service.texts import LONGEST
from attakit.service.web.errors import documented, refuse
from attakit.service.web.predicting import answer_together
from attakit.service.web.security import Predicting, require
from attakit.service.web.state import AppState, Service, app_state
from attakit.service.web.uploads import Upload, read_upload


class _DirectRoute(APIRoute):
    """A route that calls its endpoint itself.

    The parameters of the endpoint describe it for /docs. FastAPI would take them apart for each
    request, which costs as much as encoding the answer.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def handle(request: Request) -> Response:
            caller = require(request.scope, _ROLES)
            response: Response = await self.endpoint(request, app_state(request), caller)
            return response

        return handle


router = APIRouter(tags=["predictions"], route_class=_DirectRoute)

_ROLES: frozenset[Role] = frozenset({"predict", "admin"})
_QUEUE = 256  # requests that may wait; more get status 503
_SMALL = 64_000  # bytes; a larger request could make others wait for its decoding


@router.post(
    "/v1/predict",
    responses={200: {"model": Predictions}, **documented(415)},
    summary="Predict one or many inputs",
)
async def predict(request: Request, service: Service, _caller: Predicting) -> Response:
    """Classify images, arrays or texts. The answer never waits for learning.

    Send image files as multipart `files`, or JSON with `images` (base64). For models that take
    them, send JSON with `arrays` (nested numbers) or `texts`. The list `about` may contain your own
    `id`, a `text` and `notes` for each input. Annotators see them. A sample may be labelled later.
    """
    if service.gathering.waiting > _QUEUE:
        raise refuse(503, "Too many requests are waiting. Try again in a moment.", retry_after=1)
    most = service.settings.server.inputs_per_request
    upload = await read_upload(request, most, _most_values(service))
    return Response(await _answer(service, request, upload), media_type="application/json")


async def _answer(service: AppState, request: Request, upload: Upload) -> bytes:
    """Answer a small request together with others, and a large one in its own thread."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) <= _SMALL:
        return await service.gathering.ask(upload)
    work = partial(answer_together, service, [upload])
    (answer,) = await to_thread.run_sync(work, limiter=service.predicting)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _most_values(service: AppState) -> int:
    """Return an upper bound of the values of one input; commas in a text look like values."""
    is_text = service.settings.input.kind == "text"
    return LONGEST if is_text else math.prod(service.inputs.shape)
