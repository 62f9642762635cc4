"""What to tell a user when something goes wrong that is no fault of the program."""

from __future__ import annotations

from torch import OutOfMemoryError

from attakit.errors import AttaError

USER_ERRORS = (AttaError, OSError, OutOfMemoryError)


def explain(error: Exception) -> str:
    """Say in one line what went wrong; errors of the machine do not say what to do, so we do.

    >>> explain(OSError("No space left on device"))
    'The system refused: No space left on device. Mend that, and give the command again.'
    """
    if isinstance(error, OutOfMemoryError):
        first_line = str(error).partition("\n")[0]
        return f"{first_line} Lower stream.batch_size, or set model.device to another device."
    if isinstance(error, AttaError):
        return str(error)
    if isinstance(error, OSError):
        return f"The system refused: {_reason(error)}. {_advice(error)}"
    return f"{type(error).__name__}: {error}"


def _reason(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.strerror}: {error.filename}"


def _advice(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "A file is where a folder should be: move it away, or name another folder."
    if isinstance(error, PermissionError):
        return "Name another place, or ask for the right to use this one."
    return "Mend that, and give the command again."
