"""The folder of a run: its files, and whether a run may start or continue there."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from attakit.errors import SettingError, StateError
from attakit.report.features import FEATURES_FILE
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.pictures import PICTURES_FILE
from attakit.report.runs import read_run
from attakit.settings.experiment import Experiment

SNAPSHOT, MODEL_FILE, DONE = "snapshot.safetensors", "model.safetensors", "done"
OLD_SNAPSHOT = "snapshot.pt"  # written by attakit 0.1; recognised, but not read
# All files that a run may write. "done" last: copied in this order, an unfinished run never looks
# done.
RUN_FILES = (STEPS_FILE, PICTURES_FILE, FEATURES_FILE, OLD_SNAPSHOT, SNAPSHOT, MODEL_FILE, DONE)


def has_run(folder: Path) -> bool:
    """True if a run was started in a folder."""
    return (folder / STEPS_FILE).exists()


def has_begun(folder: Path) -> bool:
    """True if a run in a folder wrote its first line. Before that, nothing is lost."""
    return has_run(folder) and b"\n" in (folder / STEPS_FILE).read_bytes()


def prepare_folder(folder: Path, *, resume: bool, replace: bool) -> None:
    """Prepare a folder for a run, or raise if that would damage another run."""
    if resume and replace:
        raise SettingError("A run is either resumed or replaced: leave out --resume or --replace.")
    if resume and not has_run(folder):
        raise StateError(f"There is no run in {folder} to resume. Start it without --resume.")
    if not (resume or replace) and has_run(folder):
        raise SettingError(
            f"{folder} already holds a run. Continue it with --resume, replace it with --replace, "
            f"or choose another folder with --set report.folder=…"
        )
    make_folder(folder, "report.folder")


def make_folder(folder: Path, setting: str) -> None:
    """Create a folder that a setting names, unless it exists."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            f"{setting}: {folder} cannot be created ({error.strerror}). Choose another folder."
        ) from error


def clear_folder(folder: Path) -> None:
    """Remove what a run wrote, and nothing else: other runs may be below."""
    for name in reversed(RUN_FILES):
        (folder / name).unlink(missing_ok=True)


def mark_done(folder: Path) -> dict[str, Any]:
    """Mark a run with an end line as done; return its numbers."""
    # In this order: after any crash, a finished run is never run again.
    (folder / DONE).touch()
    (folder / SNAPSHOT).unlink(missing_ok=True)
    return read_end(folder)


def check_same_settings(experiment: Experiment, folder: Path) -> None:
    """Raise `StateError` unless the run in a folder was started with these settings."""
    changed = changed_settings(experiment, folder)
    if changed:
        raise StateError(
            f"The run in {folder} had other settings ({', '.join(changed)}). Resume it with the "
            f"settings it was started with, or start again in another folder."
        )


def check_same_model(folder: Path, source_hash: str) -> None:
    """Raise `StateError` unless the run in a folder started from this source model."""
    if read_run(folder).environment.get("model") != source_hash:
        raise StateError(
            f"The run in {folder} started from another source model. Restore the weights it was "
            "started with, or start again in another folder."
        )


def has_snapshot(folder: Path) -> bool:
    """True if a run in a folder was saved; raises `StateError` if an older version saved it."""
    if (folder / OLD_SNAPSHOT).exists():
        raise StateError(
            f"The run in {folder} was saved by an older version of attakit, and this version "
            f"cannot read its {OLD_SNAPSHOT}. Continue it with the version that saved it, or "
            f"delete {OLD_SNAPSHOT} to run it again from its first step."
        )
    return (folder / SNAPSHOT).exists()


def stopped(folder: Path) -> str:
    """Return the message for a user whose run was stopped."""
    return f"Stopped. Continue with --resume; saved in {folder}."


def changed_settings(
    experiment: Experiment, folder: Path, *, ignored: Collection[str] = ("report",)
) -> list[str]:
    """Return the dotted names of settings that differ between an experiment and a run's folder."""
    none = dict.fromkeys(ignored)
    before, now = _brought_up_to_date(read_run(folder).experiment), describe(experiment)
    return list(_differences({**before, **none}, {**now, **none}))


def read_end(folder: Path) -> dict[str, Any]:
    """Return the numbers of a finished run, as they were written."""
    end = read_run(folder).end
    if end is None:
        raise StateError(
            f"The run in {folder} is marked as done, but its {STEPS_FILE} has no end line. "
            f"Run it again with --replace."
        )
    return {name: value for name, value in end.items() if name != "kind"}


def describe(experiment: Experiment) -> dict[str, Any]:
    """Return the settings of an experiment, ready for JSON."""
    described: dict[str, Any] = json.loads(experiment.model_dump_json())
    if experiment.pool is None:
        del described["pool"]
    else:
        del described["method"]
        described["label"] = experiment.label
    return described


def _brought_up_to_date(described: dict[str, Any]) -> dict[str, Any]:
    """Return an old experiment with newer settings at their defaults."""
    settings = {name: value for name, value in described.items() if name != "label"}
    try:
        return describe(Experiment.model_validate(settings))
    except ValidationError:  # a removed setting is a difference under its own name
        return described


def _differences(one: Any, other: Any, name: str = "") -> Iterator[str]:
    """Return the dotted names of settings in which two experiments differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted({*one, *other}):
            yield from _differences(one.get(key), other.get(key), f"{name}.{key}".lstrip("."))
    elif one != other:
        yield name
