"""Run records, read from JSON lines, and groups of runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from attakit.errors import SettingError, StateError
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.lines import as_json, read_json_lines

# Two runs that differ only in these are repeats of one experiment. "matched" is the number of
# labels of a control run that matches another run of the same seed; older runs have "counts".
_NOT_SETTINGS = frozenset(
    {"seed", "report", "folder", "weights", "device", "threads", "matched", "counts"}
)
_SHOWN_DIFFERENCES = 3

INAPPLICABLE_FILE = "inapplicable.json"  # replaces a run whose method does not apply

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class RunRecord:
    """One run, finished or still running.

    Parameters
    ----------
    experiment, environment
        Settings and environment of the run.
    segments, classes
        Names of the stream's segments in order, and of the classes.
    steps
        One mapping per step.
    end
        Numbers of the whole run; None if it is unfinished.
    before
        Numbers from before the first step.
    inapplicable
        Why the method does not apply to the model, so that nothing was run; empty if it was.

    Examples
    --------
    >>> RunRecord({"seed": 3, "method": {"name": "tent"}}, {}, [], [], [], None).label
    'tent'
    """

    experiment: dict[str, Any]
    environment: dict[str, Any]
    segments: list[str]
    classes: list[str]
    steps: list[dict[str, Any]]
    end: dict[str, Any] | None
    before: dict[str, Any] = field(default_factory=dict)
    inapplicable: str = ""

    @property
    def is_finished(self) -> bool:
        return self.end is not None

    @property
    def label(self) -> str:
        """Name of the method in tables."""
        method = self.experiment.get("method")
        names = method if isinstance(method, Mapping) else {"name": method}
        label = self.experiment.get("label") or names.get("label") or names.get("name")
        return str(label or "run")

    @property
    def seed(self) -> int | None:
        return self.experiment.get("seed")

    @property
    def settings(self) -> dict[str, Any]:
        """All settings that make a difference, sorted by dotted name."""
        return dict(sorted(_settings(self.experiment).items()))


def read_run(path: Path) -> RunRecord:
    """Read a run from its folder or from its `steps.jsonl`.

    A torn last line, as in a live or killed run, is ignored.
    """
    file = path / STEPS_FILE if path.is_dir() else path
    if not file.exists() and (path / INAPPLICABLE_FILE).exists():
        return _read_inapplicable(path / INAPPLICABLE_FILE)
    lines = read_json_lines(file, "run")
    first = lines[0][1]
    for name, wanted in (("experiment", dict), ("environment", dict), ("segments", list)):
        if not isinstance(first.get(name), wanted):
            raise StateError(
                f"{file}, line {lines[0][0]}: {name!r} is missing or is not a {wanted.__name__}. "
                "The file was not written by attakit. Run the experiment again."
            )
    steps = [line for _, line in lines if line["kind"] == "step"]
    ends = [line for _, line in lines if line["kind"] == "end"]
    for number, line in lines:
        if line["kind"] == "step" and not isinstance(line.get("step"), int):
            raise StateError(
                f"{file}, line {number}: a step has no number. Run the experiment again."
            )
    return RunRecord(
        first["experiment"],
        first["environment"],
        [str(name) for name in first["segments"]],
        [str(name) for name in first.get("classes") or []],
        steps,
        ends[-1] if ends else None,
        dict(first.get("before") or {}),
    )


def _read_inapplicable(file: Path) -> RunRecord:
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        return RunRecord(facts["experiment"], {}, [], [], [], None, inapplicable=facts["message"])
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"{file} is damaged ({error}). Run `attakit bench` again.") from error


def inapplicable_note(runs: Sequence[RunRecord]) -> str:
    """Describe methods that do not apply, and why; empty if all do."""
    labels: dict[str, list[str]] = {}
    for run in runs:
        if run.inapplicable:
            labels.setdefault(run.inapplicable, []).append(run.label)
    listed = [f"{', '.join(dict.fromkeys(own))} ({why})" for why, own in labels.items()]
    return f"Does not apply: {'; '.join(listed)}" if listed else ""


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """Return the folders of runs in or below the given folders, each once."""
    runs: list[Path] = []
    for folder in folders:
        if not folder.exists():
            raise SettingError(f"There is no folder {folder}. `attakit run` creates one.")
        files = (STEPS_FILE, INAPPLICABLE_FILE)
        found = sorted({path.parent for name in files for path in folder.rglob(name)})
        if not found:
            raise SettingError(
                f"{folder} holds no run: no {STEPS_FILE} is in or below it. Give a folder that "
                "`attakit run` or `attakit bench` wrote."
            )
        runs += found
    return list(dict.fromkeys(runs))


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Group items by key, in order of appearance.

    >>> grouped([1, 2, 3], lambda number: number % 2)
    {1: [1, 3], 0: [2]}
    """
    found: dict[_Key, list[_Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


@dataclass(frozen=True)
class Group:
    """The same experiment with several seeds."""

    label: str
    runs: tuple[RunRecord, ...]


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Group runs that differ only in their seed, in order of appearance.

    Runs of one method with different settings stay separate, and their labels name the settings.

    >>> runs = [
    ...     RunRecord({"seed": seed, "method": {"name": "tent", "lr": lr}}, {}, [], [], [], None)
    ...     for lr in (0.1, 0.2) for seed in (1, 2)
    ... ]
    >>> [(group.label, len(group.runs)) for group in group_runs(runs)]
    [('tent (lr 0.1)', 2), ('tent (lr 0.2)', 2)]
    """
    groups = grouped(runs, lambda run: (run.label, as_json(run.settings))).values()
    first = [members[0] for members in groups]
    return [Group(_distinct_label(members[0], first), tuple(members)) for members in groups]


def _settings(experiment: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in experiment.items():
        if name in _NOT_SETTINGS:
            continue
        if isinstance(value, Mapping):
            flat |= _settings(value, f"{prefix}{name}.")
        elif value is not None:  # the same as a setting that an older version did not have
            flat[prefix + name] = value
    return flat


def _distinct_label(run: RunRecord, others: Sequence[RunRecord]) -> str:
    rivals = [other.settings for other in others if other.label == run.label]
    own = run.settings
    names = sorted({name for rival in rivals for name in rival} | own.keys())
    differing = [n for n in names if any(rival.get(n) != own.get(n) for rival in rivals)]
    if not differing:
        return run.label
    listed = ", ".join(_in_words(name, own.get(name)) for name in differing[:_SHOWN_DIFFERENCES])
    return f"{run.label} ({listed})"


def _in_words(name: str, value: Any) -> str:
    """Format a setting as part of a method's name."""
    return f"{name.removeprefix('method.')} {'default' if value is None else value}"
