"""Requests from the user's own machine, and requests that other sites' pages send."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from attakit.service.web.connections import CONNECTION
from attakit.service.web.errors import refuse
from attakit.service.web.peers import is_other_user

SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_PROXY_HEADERS = {"forwarded", "via", "x-real-ip"}  # or any X-Forwarded-…
_LOG_IN = "Log in with a token, or connect directly."


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """True if an address can be reached from this machine only.

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
    """Reject a request unless this server's user sent it directly, on this machine.

    A proxy may hide itself. So the connection's user counts too, if the system reports it: a proxy
    runs as another user. By default nginx also uses HTTP 1.0, unlike any browser.
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
    # Compared as text, so that an invalid address counts as foreign too.
    own = {f"{scheme}://{request.headers.get('host')}" for scheme in ("http", "https")}
    if (origin is not None and origin not in own) or request.headers.get("sec-fetch-site") in (
        "cross-site",
        "same-site",
    ):
        raise refuse(403, "The request comes from another site. Use the pages of this server.")


def _is_direct(request: HTTPConnection) -> bool:
    """True if a request came from this user. Through a proxy it could come from anyone."""
    peer = request.client.host if request.client else ""
    names = request.headers.keys()
    proxied = any(name in _PROXY_HEADERS or name.startswith("x-forwarded-") for name in names)
    old = request.scope["http_version"] == "1.0"
    return is_loopback(peer) and not proxied and not old and not _is_foreign(request)


def _is_foreign(request: HTTPConnection) -> bool:
    """True if another user opened the connection. It is checked once per connection."""
    notes = request.scope["state"].get(CONNECTION)
    if notes is None:  # the web server stores none
        return False
    if "foreign" not in notes:
        notes["foreign"] = is_other_user(request.scope["client"], request.scope["server"])
    return bool(notes["foreign"])


@lru_cache(maxsize=64)
def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""
