"""Keep memory that tensors gave back, for the next tensors."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of glibc's mallopt


def keep_freed_memory() -> bool:
    """Stop the C library from returning freed memory to the system; True if it did.

    By default glibc asks the system for every large tensor and hands it back at once. The system
    clears each page every time, which can take as long as the network itself. The process then
    stays as large as it was at its peak, so this is for programs that compute and end.

    Examples
    --------
    >>> keep_freed_memory() in (True, False)  # False on systems without glibc
    True
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(mallopt(*option) for option in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1)))
