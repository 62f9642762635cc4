"""Requests from the user's own machine, and requests that other sites' pages send."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from attakit.service.web.connections import CONNECTION
from attakit.service.web.errors import refuse
from attakit.service.web.peers import is_other_user

SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_PROXY_HEADERS = {"forwarded", "via", "x-real-ip"}  # or any X-Forwarded-…
_LOG_IN = "Log in with a token, or connect directly."


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_local(request: HTTPConnection) -> None:
    """Reject a request unless the user of this server sent it, on this machine and directly.

    A proxy may hide itself. So the user who opened the connection counts too, where the system
    says who it is: a proxy has a user of its own. By default nginx also speaks HTTP 1.0, as no
    browser does.
    """
    if not _is_direct(request):
        raise refuse(
            403,
            "Without a token, only direct connections of the user who runs this server are "
            f"accepted. This request came from elsewhere or through a proxy. {_LOG_IN}",
        )
    if not is_loopback(_host_name(request.headers.get("host", ""))):
        raise refuse(
            403,
            "Without a token, this server answers only under a local name such as localhost. "
            "Use that name, or log in with a token.",
        )
    if request.scope["method"] not in SAFE_METHODS:
        check_origin(request)


def check_origin(request: HTTPConnection) -> None:
    """Reject a request that a page of another site sent."""
    origin = request.headers.get("origin")
    # Compared as text, so that a value that is no address is foreign too.
    own = {f"{scheme}://{request.headers.get('host')}" for scheme in ("http", "https")}
    if (origin is not None and origin not in own) or request.headers.get("sec-fetch-site") in (
        "cross-site",
        "same-site",
    ):
        raise refuse(403, "The request comes from another site. Use the pages of this server.")


def _is_direct(request: HTTPConnection) -> bool:
    """Whether a request came from this user; through a proxy it could come from anybody."""
    peer = request.client.host if request.client else ""
    names = request.headers.keys()
    proxied = any(name in _PROXY_HEADERS or name.startswith("x-forwarded-") for name in names)
    old = request.scope["http_version"] == "1.0"
    return is_loopback(peer) and not proxied and not old and not _is_foreign(request)


def _is_foreign(request: HTTPConnection) -> bool:
    """Whether another user opened the connection. It is looked up once for each connection."""
    notes = request.scope["state"].get(CONNECTION)
    if notes is None:  # of a web server that keeps none
        return False
    if "foreign" not in notes:
        notes["foreign"] = is_other_user(request.scope["client"], request.scope["server"])
    return bool(notes["foreign"])


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""
