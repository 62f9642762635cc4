"""One-line messages for errors that the user or the machine caused, not the program."""

from __future__ import annotations

import errno
import sys

from attakit.errors import AttaError


def is_user_error(error: Exception) -> bool:
    """True if the user can fix the error, so that a traceback would not help.

    >>> is_user_error(OSError("No space left on device")), is_user_error(KeyError("name"))
    (True, False)
    """
    return isinstance(error, AttaError | OSError) or _is_out_of_memory(error)


def explain(error: Exception) -> str:
    """Say in one line what went wrong and what to do.

    >>> explain(OSError(28, "No space left on device"))
    'No space left on device. Free some space and run the command again.'
    """
    if isinstance(error, AttaError):
        return str(error)
    if isinstance(error, OSError):
        return f"{_reason(error)}. {_advice(error)}"
    if _is_out_of_memory(error):
        first_line = str(error).partition("\n")[0]
        return f"{first_line} Lower stream.batch_size, or set model.device to another device."
    return f"{type(error).__name__}: {error}"


def _is_out_of_memory(error: Exception) -> bool:
    # Only torch raises this error, so it need not be imported here: that takes seconds.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(error, torch.OutOfMemoryError)


def _reason(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"


def _advice(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "A file is where a folder should be. Move it, or choose another folder."
    if isinstance(error, PermissionError):
        return "Choose another place, or get permission to use this one."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space and run the command again."
    return "Fix this and run the command again."
