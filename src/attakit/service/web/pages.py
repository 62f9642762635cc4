"""The web pages: dashboard, labelling, log-in and the API reference."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from attakit.charts import read_assets
from attakit.service.web.reference import read_reference
from attakit.service.web.security import Caller

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_TITLES = {401: "Please log in", 403: "Not allowed", 404: "Not found"}
_READ = ["GET", "HEAD"]  # HEAD: for programs that monitor the site
_FOREVER = "public, max-age=31536000, immutable"


class Pages:
    """Templates and static files of the package, read once.

    The address of a static file changes with its content, so browsers may cache it forever.

    Examples
    --------
    >>> "Log in" in Pages().render("login.html", None, here="/login", next="/", wrong="")
    True
    """

    def __init__(self) -> None:
        folder = files("attakit.service.web") / "static"
        own = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        shared = {name: text.encode() for name, text in read_assets().items()}
        self.files = shared | own
        content = b"".join(name.encode() + self.files[name] for name in sorted(self.files))
        self.mark = hashlib.sha256(content).hexdigest()[:12]
        self._templates = Environment(
            loader=PackageLoader("attakit.service.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["code"] = mark_code

    def render(self, template: str, visitor: Caller | None, **values: Any) -> str:
        """Render a template."""
        shown = self._templates.get_template(template)
        return shown.render(visitor=visitor, static=f"/static/{self.mark}", **values)

    def file(self, mark: str, name: str) -> Response:
        """Return a static file, or 404. An old address returns the new file, without caching."""
        if name not in self.files:
            return Response("There is no such file.", 404, media_type="text/plain")
        caching = _FOREVER if mark == self.mark else "no-cache"
        kind = _TYPES["." + name.rpartition(".")[2]]
        return Response(self.files[name], media_type=kind, headers={"Cache-Control": caching})


def pages_router(
    visitor_of: Callable[[Request], Caller | None],
    description: Callable[[], Mapping[str, Any]],
    pages: Pages | None = None,
    *,
    example: str = "",
) -> APIRouter:
    """Return the router of the pages.

    `visitor_of` returns the visitor of a request, or None without a log-in. `description` returns
    the OpenAPI description for /docs. `example` is what curl needs to send an input.
    """
    shown = pages or Pages()
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    def page(request: Request, template: str) -> Response:
        """Return a page for people who may label, or the log-in page for others."""
        visitor = visitor_of(request)
        if visitor is None:
            return RedirectResponse(f"/login?next={quote(request.url.path)}", 303)
        if visitor.role == "predict":
            wrong = "This token is for predictions only. Use one for labelling."
            return login_page(shown, wrong=wrong, status=403)
        return html(shown.render(template, visitor, here=request.url.path, example=example))

    @router.api_route("/", methods=_READ)
    def dashboard(request: Request) -> Response:
        return page(request, "dashboard.html")

    @router.api_route("/label", methods=_READ)
    def label(request: Request) -> Response:
        return page(request, "label.html")

    @router.api_route("/login", methods=_READ)
    def login(request: Request) -> Response:
        following = request.query_params.get("next", "/")
        visitor = visitor_of(request)
        if visitor is not None and visitor.open:  # there is nothing to log in to
            return RedirectResponse(local_path(following), 303)
        return login_page(shown, following=following)

    @router.api_route("/docs", methods=_READ)
    def docs(request: Request) -> Response:
        origin = str(request.base_url).rstrip("/")
        reference = read_reference(description(), origin)
        visitor = visitor_of(request)
        return html(
            shown.render("docs.html", visitor, here="/docs", reference=reference, example=example)
        )

    @router.api_route("/static/{mark}/{name}", methods=_READ)
    def static(mark: str, name: str) -> Response:
        return shown.file(mark, name)

    return router


def login_page(
    pages: Pages, *, following: str = "/", wrong: str = "", status: int = 200
) -> Response:
    """Return the page that asks for a token, with an error if the last one was wrong."""
    text = pages.render("login.html", None, here="/login", next=local_path(following), wrong=wrong)
    return html(text, status)


def error_page(pages: Pages, status: int, sentence: str) -> Response:
    """Return the page that shows an error."""
    title = _TITLES.get(status, "Something went wrong")
    text = pages.render(
        "error.html", None, here="/login", title=title, status=status, text=sentence
    )
    return html(text, status)


def local_path(address: str) -> str:
    r"""Return an address if it is a page of this server, else the dashboard (no open redirect).

    >>> local_path("/label"), local_path("//evil.example/"), local_path("/\\evil.example")
    ('/label', '/', '/')
    """
    return address if address in {"/", "/label", "/docs"} else "/"


def mark_code(text: str) -> Markup:
    """Return text with the parts between backticks marked as code.

    >>> mark_code("Send `a < b`.")
    Markup('Send <code>a &lt; b</code>.')
    """
    parts = [escape(part) for part in text.split("`")]
    marked = [
        Markup("<code>{}</code>").format(part) if place % 2 else part
        for place, part in enumerate(parts)
    ]
    return Markup("").join(marked)


def html(text: str, status: int = 200) -> HTMLResponse:
    """Return an uncached page, because it may contain the session's CSRF token."""
    return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})
