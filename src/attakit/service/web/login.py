"""POST /login and /logout, and the visitor of a page."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from attakit.service.web.local import check_origin
from attakit.service.web.pages import Pages, local_path, login_page
from attakit.service.web.security import Caller, find_caller
from attakit.service.web.sessions import COOKIE, LASTING
from attakit.service.web.state import Service


async def read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form that a page sent."""
    body = (await request.body()).decode("utf-8", "replace")
    return {name: values[0] for name, values in parse_qs(body).items()}


LoginForm = Annotated[dict[str, str], Depends(read_form)]


def visitor_of(request: Request) -> Caller | None:
    """Return the visitor of a page; None without a log-in."""
    return find_caller(request.scope)


def login_router(pages: Pages) -> APIRouter:
    """Return the router for the forms of the log-in page."""
    router = APIRouter(include_in_schema=False)

    @router.post("/login")
    async def log_in(request: Request, form: LoginForm, service: Service) -> Response:
        check_origin(request)
        following = form.get("next", "/")
        address = request.client.host if request.client else "unknown"
        try:
            token = form.get("token", "")
            cookie = await service.guard.log_in(token, address)
        except HTTPException as error:
            wrong = str(error.detail)
            shown = login_page(pages, following=following, wrong=wrong, status=error.status_code)
            shown.headers.update(error.headers or {})
            return shown
        response = RedirectResponse(local_path(following), 303)
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=round(LASTING),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    @router.post("/logout")
    async def log_out(request: Request, form: LoginForm, service: Service) -> Response:
        check_origin(request)
        session = service.guard.sessions.read(request.cookies.get(COOKIE, ""))
        if session and service.guard.sessions.is_csrf(session, form.get("csrf", "")):
            await run_in_threadpool(service.guard.sessions.end, session)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    return router
