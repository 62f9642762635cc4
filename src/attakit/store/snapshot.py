"""Snapshots: a whole run in one file, written so that a crash cannot spoil it."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from attakit.errors import StateError

FORMAT = 1

_DAMAGE = (pickle.UnpicklingError, OSError, RuntimeError, EOFError, ValueError, KeyError)


def save_snapshot(path: Path, state: Mapping[str, Any]) -> None:
    """Write a state; the old file stays whole until the new one is."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except (OSError, RuntimeError) as error:  # torch turns a full disk into a RuntimeError
        raise StateError(
            f"The run cannot be saved in {path} ({error}). Make room there or choose another "
            f"folder; what was saved before is whole."
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def load_snapshot(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read a state that `save_snapshot` wrote. Never runs code from the file."""
    if not path.exists():
        raise StateError(f"There is no saved run at {path}. Start it without --resume.")
    # Files of other kinds would reach torch's reader of old formats, which is less careful.
    if not zipfile.is_zipfile(path):
        raise _damaged(path)
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except _DAMAGE as error:
        raise _damaged(path) from error
    found = state.get("format") if isinstance(state, dict) else None
    if found != FORMAT:
        raise StateError(
            f"{path} was written in format {found}; this version reads format {FORMAT}. "
            f"Start the run anew without --resume."
        )
    del state["format"]
    return dict(state)


def _damaged(path: Path) -> StateError:
    return StateError(
        f"{path} is not a saved run, or it is damaged. Start the run anew without --resume."
    )
