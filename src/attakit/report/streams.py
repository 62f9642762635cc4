"""Find runs on the same stream. Tables, layouts and plots share this definition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from attakit.report.lines import as_json
from attakit.report.runs import RunRecord, grouped

DOMAIN_WISE = "domain_after_domain"
# The paper's names of the stream orders.
STREAM_NAMES = {DOMAIN_WISE: "domain-wise", "random": "random"}

BUDGET_SETTING = "labels.budget"
_STREAM = "stream."
# The only stream setting that may differ by method, as in the paper's protocol.
_OF_THE_METHOD = "stream.batch_size"
_OF_THE_ORDER = re.compile(r"stream\.order(_settings\..*)?")
_OWN_FOLDERS = ("folders", "corrupted")  # data sets whose name does not say what they hold
_OWN_FILES = ("table", "text")  # the same for your own files
_FEW = 3  # differing settings to name, if they distinguish all runs


@dataclass(frozen=True, slots=True)
class SameConditions:
    """Runs on one data set under the same conditions, with any order of the stream."""

    data_set: str
    description: str  # how the conditions differ from others on this data set, if there are others
    runs: list[RunRecord]
    model: str = ""  # its name, if models are distinguished


def by_conditions(runs: Sequence[RunRecord]) -> list[SameConditions]:
    """Group runs that differ only in method, seed and order of the stream.

    >>> def run(share):
    ...     return RunRecord({"stream": {"name": "pacs", "share": share}}, {}, [], [], [], None)
    >>> [(one.description, len(one.runs)) for one in by_conditions([run(0.5), run(1.0), run(0.5)])]
    [('share = 0.5', 2), ('share = 1.0', 1)]
    """
    found: list[SameConditions] = []
    for data_set, own_runs in grouped(runs, data_set_of).items():
        parts = grouped(own_runs, lambda run: as_json(conditions_of(run))).values()
        conditions = [conditions_of(part[0]) for part in parts]
        names = differing(conditions)
        found += [
            SameConditions(data_set, ", ".join(describe_settings(own, names)), part)
            for own, part in zip(conditions, parts, strict=True)
        ]
    return found


def by_model(runs: Sequence[RunRecord]) -> list[SameConditions]:
    """Group runs that differ only in method, seed and any order of the stream.

    Unlike `by_conditions`, it separates models, and the domains may come in any order.
    """
    found: list[SameConditions] = []
    for (data_set, model), own_runs in grouped(
        runs, lambda run: (data_set_of(run), str(setting(run, "model", "name", "")))
    ).items():
        parts = grouped(own_runs, lambda run: as_json(_in_any_order(run))).values()
        conditions = [_in_any_order(part[0]) for part in parts]
        names = differing(conditions)
        found += [
            SameConditions(data_set, ", ".join(describe_settings(own, names)), part, model)
            for own, part in zip(conditions, parts, strict=True)
        ]
    return found


def _in_any_order(run: RunRecord) -> dict[str, Any]:
    targets = setting(run, "stream", "targets", [])
    return {**conditions_of(run), "targets": sorted(targets) or None}


def conditions_of(run: RunRecord) -> dict[str, Any]:
    """Return the stream settings of a run, without its order and method-specific ones.

    Settings without effect (none, or switched off) are excluded, so that an older record without
    them is equal.
    """
    return {
        name.removeprefix(_STREAM): value
        for name, value in run.settings.items()
        if name.startswith(_STREAM)
        and name != _OF_THE_METHOD
        and not _OF_THE_ORDER.fullmatch(name)
        and value not in (None, False)
    }


def own_settings(run: RunRecord) -> dict[str, Any]:
    """Return the settings of a run outside its stream, and its batch size, without its budget."""
    return {
        name: value
        for name, value in run.settings.items()
        if name != BUDGET_SETTING and (name == _OF_THE_METHOD or not name.startswith(_STREAM))
    }


def differing(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of settings that differ."""
    names = sorted({name for settings in found for name in settings})
    return [name for name in names if any(s.get(name) != found[0].get(name) for s in found)]


def distinguishing_settings(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The shortest list of differing settings that distinguishes all (at least three)."""
    names = differing(found)
    for count in range(_FEW, len(names)):
        if len({as_json(describe_settings(settings, names[:count])) for settings in found}) == len(
            found
        ):
            return names[:count]
    return names


def describe_conditions(found: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Describe how streams differ; columns of a file only if its name is not enough.

    >>> own = {"name": "table", "table.file": "a.csv", "table.label": "kind"}
    >>> describe_conditions([own, {"name": "digits"}])
    [['name = table', 'table.file = a.csv'], ['name = digits']]
    """
    names = differing(found)
    short = [name for name in names if _is_file(name) or not _is_inside(name)]
    titles = [
        describe_settings(each, [name for name in short if name in each or not _is_inside(name)])
        for each in found
    ]
    is_enough = len({as_json(title) for title in titles}) == len({as_json(one) for one in found})
    return titles if is_enough else [describe_settings(each, names) for each in found]


def _is_inside(name: str) -> bool:
    return name.partition(".")[0] in _OWN_FILES and "." in name


def _is_file(name: str) -> bool:
    return _is_inside(name) and name.endswith(".file")


def describe_settings(
    settings: Mapping[str, Any], names: Sequence[str], sign: str = " = "
) -> list[str]:
    """Describe settings in words.

    >>> describe_settings({"share": 0.5, "size": 128}, ["share", "severity"])
    ['share = 0.5', 'severity not set']
    """
    return [
        f"{name} not set" if settings.get(name) is None else f"{name}{sign}{settings[name]}"
        for name in names
    ]


def without_repeats(runs: Sequence[RunRecord], *, ignoring: str = "") -> list[RunRecord]:
    """Return the runs without repeats of label, settings, seed and source model.

    Of repeats, the first finished one stays. `ignoring` names a setting that may differ in a
    repeat.
    """
    kept: dict[str, RunRecord] = {}
    for run in runs:
        settings = {name: value for name, value in run.settings.items() if name != ignoring}
        key = as_json([run.label, settings, run.seed, run.environment.get("model")])
        if key not in kept or (run.is_finished and not kept[key].is_finished):
            kept[key] = run
    return list(kept.values())


def repeats_note(count: int) -> Iterator[str]:
    """Yield a note about excluded runs, if there are any."""
    if count:
        yield f"Left out: {count} that repeat settings, seed and model of another."


def stream_name(order: str) -> str:
    """Return the name of a stream order in tables."""
    return STREAM_NAMES.get(order, order.replace("_", " "))


def setting(run: RunRecord, table: str, name: str, default: Any = None) -> Any:
    """Return a setting of a run's experiment, or the default."""
    found = run.experiment.get(table)
    value = found.get(name) if isinstance(found, Mapping) else None
    return default if value is None else value


def order_of(run: RunRecord) -> str:
    """Return the order of a run's stream, with its settings if there are any.

    >>> stream = {"order": "random", "order_settings": {"splits": 2}}
    >>> order_of(RunRecord({"stream": stream}, {}, [], [], [], None))
    'random (splits=2)'
    """
    order = str(setting(run, "stream", "order", DOMAIN_WISE))
    settings = setting(run, "stream", "order_settings", {})
    return (
        f"{order} ({', '.join(describe_settings(settings, sorted(settings), '='))})"
        if settings
        else order
    )


def data_set_of(run: RunRecord) -> str:
    """Return the data set of a run; own folders and files are named by their path.

    >>> data_set_of(RunRecord({"stream": {"name": "folders", "root": "x/letters"}}, {}, [], [], [],
    ...     None))
    'letters'
    """
    name, root = str(setting(run, "stream", "name", "stream")), setting(run, "stream", "root")
    if name in _OWN_FILES:
        return PurePath(setting(run, "stream", name, {}).get("file", name)).stem
    return PurePath(root).name if root and name in _OWN_FOLDERS else name


def is_pool(run: RunRecord) -> bool:
    """True if a run had all target samples from the start, so that there was no stream."""
    return isinstance(run.experiment.get("pool"), Mapping)
