"""Connect to a Ray cluster, with errors that say what to do."""

from __future__ import annotations

import importlib
import os
import socket
from typing import Any

from attakit.errors import MissingExtra, SettingError

ADDRESS_VARIABLE = "RAY_ADDRESS"
_PATIENCE = 5.0  # seconds before a cluster counts as unreachable
_CLIENT = "ray://"  # address prefix of a cluster that is reached from outside


def check_answers(address: str) -> None:
    """Raise `SettingError` if nothing listens at HOST:PORT. Ray itself would retry for minutes.

    Names that Ray knows, such as "auto", are left to Ray.
    """
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def connect(ray: Any, address: str | None) -> None:
    """Connect to a cluster. None uses $RAY_ADDRESS, a local cluster, or starts one."""
    named = address or os.environ.get(ADDRESS_VARIABLE)
    if named:
        check_answers(named)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ValueError, ConnectionError, RuntimeError) as error:
        raise _no_cluster(named, error) from error


def _no_cluster(address: str | None, error: Exception) -> SettingError:
    reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
    if address is None:
        return SettingError(
            f"--ray: found no cluster and could not start one ({reason}). Start one with `ray "
            "start --head`, or leave out --ray."
        )
    return SettingError(
        f"--ray: no cluster answers at {address} ({reason}). Start one with `ray start --head`, or "
        f"leave out the address, also in ${ADDRESS_VARIABLE}."
    )


def import_ray(part: str = "ray") -> Any:
    """Import Ray or a part of it, or raise `MissingExtra`."""
    try:
        return importlib.import_module(part)
    except ImportError as error:
        raise MissingExtra(
            f"--ray needs Ray, which cannot be imported ({error}). Install it with: "
            f"pip install 'attakit[ray]'"
        ) from error
