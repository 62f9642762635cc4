"""Find out which user of this machine opened a connection."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path

_TABLES = ("tcp", "tcp6")
_LOCAL, _REMOTE, _USER = 1, 2, 7  # columns

Address = tuple[str, int]


def is_other_user(client: Address, server: Address, folder: Path = Path("/proc/net")) -> bool:
    """True if another user of this machine opened a connection; False if unknown.

    Only Linux lists the users of connections.
    """
    wanted = (_encode(client), _encode(server))
    for table in _TABLES:
        try:
            lines = (folder / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for columns in map(str.split, lines):
            if (columns[_LOCAL], columns[_REMOTE]) == wanted:
                return int(columns[_USER]) != os.getuid()
    return False


def _encode(address: Address) -> str:
    """Return an address in the kernel's format: words of four bytes, each reversed."""
    packed = ip_address(address[0]).packed
    words = [packed[start : start + 4][::-1].hex() for start in range(0, len(packed), 4)]
    return f"{''.join(words).upper()}:{address[1]:04X}"
