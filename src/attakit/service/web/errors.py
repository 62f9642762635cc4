"""Errors as {"error": one sentence}, or as a page for people; never with a path or a trace."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from attakit.client.bodies import Problem
from attakit.errors import LabelError, StateError, StreamError, UnknownQuestion

log = logging.getLogger(__name__)

_WORDS = {
    404: "There is nothing at this address. See /docs for the list of addresses.",
    405: "This address does not support this method. See /docs for its methods.",
}
_FOR_PROGRAMS = ("/v1/", "/metrics", "/healthz", "/readyz", "/openapi.json", "/static/")
_DESCRIPTIONS = {
    400: "The request cannot be read",
    401: "No token, or an unknown one",
    403: "The token's role does not allow this, or the request comes from another site",
    404: "Not found",
    409: "The request does not fit the current state",
    413: "The request is too large",
    415: "The content type is not supported",
    422: "A value in the request is wrong",
    429: "Too many requests; wait for the seconds in the header Retry-After",
    503: "The service is starting or busy; wait for the seconds in the header Retry-After",
}


def refuse(status: int, sentence: str, *, retry_after: float | None = None) -> HTTPException:
    """Return the error to raise in an endpoint."""
    headers = {} if retry_after is None else {"Retry-After": str(max(1, round(retry_after)))}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return HTTPException(status, sentence, headers=headers or None)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of an endpoint for its OpenAPI description.

    >>> sorted(documented(404))
    [400, 401, 403, 404, 413, 422, 429, 503]
    """
    always = {400, 401, 403, 413, 422, 429, 503}
    return {
        status: {"model": Problem, "description": _DESCRIPTIONS[status]}
        for status in sorted(always | set(statuses))
    }


def problem(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an error as a response."""
    return JSONResponse({"error": sentence}, status, headers=headers)


def unexpected(error: Exception, where: str) -> JSONResponse:
    """Log an unexpected error, and return a response with the number of its log line."""
    number = secrets.token_hex(4)
    log.error("unexpected error", exc_info=error, extra={"id": number, "where": where})
    return problem(500, f"Internal error, logged as {number}. Give this number to the operator.")


def install(
    app: FastAPI, page: Callable[[int, str], Response], routes: Sequence[BaseRoute] = ()
) -> None:
    """Install the error handlers; `page` renders a status and a sentence for people.

    `routes` are those of the interface. Some have the same address and different methods.
    """
    app.add_exception_handler(HTTPException, _refused_handler(page, routes))
    app.add_exception_handler(RequestValidationError, _invalid)
    for kind, status in (
        (StreamError, 422),
        (UnknownQuestion, 404),
        (LabelError, 422),
    ):
        app.add_exception_handler(kind, _sentence_handler(status))
    app.add_exception_handler(StateError, _unavailable)


def _refused_handler(page: Callable[[int, str], Response], routes: Sequence[BaseRoute]) -> Any:
    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        plain = {"Not Found", "Method Not Allowed"}
        sentence = _WORDS[error.status_code] if error.detail in plain else str(error.detail)
        show = page if _is_person(request) else problem
        response = show(error.status_code, sentence)
        response.headers.update(error.headers or {})
        if error.status_code == 405 and (methods := _methods(routes, request.url.path)):
            response.headers["Allow"] = ", ".join(sorted(methods))
        return response

    return refused


def _methods(routes: Sequence[BaseRoute], path: str) -> set[str]:
    """Return the methods of an address. Starlette names only those of the first route."""
    found = [one for one in routes if isinstance(one, Route) and one.path_regex.match(path)]
    return {method for one in found for method in one.methods or ()}


def _is_person(request: Request) -> bool:
    """True if a browser will show the response."""
    accepts = "text/html" in request.headers.get("accept", "")
    return accepts and not request.url.path.startswith(_FOR_PROGRAMS)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"])
    return problem(422, f"{place}: {first['msg']}. See /docs for this address.")


def _sentence_handler(status: int) -> Any:
    async def handle(_request: Request, error: Exception) -> JSONResponse:
        return problem(status, str(error))

    return handle


async def _unavailable(_request: Request, error: Exception) -> JSONResponse:
    # The error contains the database's address, which clients must not see.
    log.error("the storage cannot be used: %s", error)
    sentence = "The service cannot use its storage now. Try again; the log says why."
    return problem(503, sentence, {"Retry-After": "1"})
