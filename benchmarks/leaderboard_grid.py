"""The best of three settings for every method of the leaderboard, chosen on a seed of its own.

    python benchmarks/leaderboard_grid.py write     # experiments/leaderboard/grid.toml
    attakit bench experiments/leaderboard/grid.toml
    python benchmarks/leaderboard_grid.py choose    # experiments/leaderboard/tuned-….toml

Every method has one setting with three values, of which one is that of published.toml. They run on
the domain-wise stream of each data set with seed 10. The one with the best accuracy runs again with
the reported seeds, on the domain-wise and the mixed streams. A method without settings enters as it
is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leaderboard_cells import ROOT, missing_streams

from attakit.bench.suites.cells import Cell, expand
from attakit.report.runs import read_run
from attakit.settings.load import copy_tables, put_value, read_tables
from attakit.settings.suite import load_suite, parse_suite

FILES = ROOT / "experiments" / "leaderboard"
SEED = 10
CHOSEN_ON = "domain_after_domain"
REPORTED_ON = ("domain_after_domain", "random")  # all orders would take twice as long


@dataclass(frozen=True)
class Choice:
    """Two values of a method's setting that compete with the published one."""

    setting: str  # dotted, below [method]
    values: tuple[float, float]


def _tenth_and_tenfold(published: float, setting: str = "lr") -> Choice:
    return Choice(setting, (published / 10, published * 10))


# By label. What decides most is the learning rate, wherever there is one.
CHOICES = {
    "Batch norm": Choice("source_samples", (10.0, 100.0)),
    "Tent": _tenth_and_tenfold(1e-3),
    "EATA": _tenth_and_tenfold(2.5e-4),
    "SAR": _tenth_and_tenfold(2.5e-4),
    "CoTTA": _tenth_and_tenfold(1e-3),
    "LAME": _tenth_and_tenfold(1.0, "strength"),
    "RDumb": _tenth_and_tenfold(2.5e-4),
    "NOTE": _tenth_and_tenfold(1e-4),
    "RoTTA": _tenth_and_tenfold(1e-3),
    "ROID": _tenth_and_tenfold(2.5e-4),
    "DeYO": _tenth_and_tenfold(2.5e-4),
    "CMF": _tenth_and_tenfold(2.5e-4),
    "Anchor head": Choice("hedge", (0.1, 0.9)),
    "SimATTA": Choice("trainer.lr", (1e-4, 1e-3)),  # its own lr is relative to the weights
    "SimATTA as in the paper": _tenth_and_tenfold(1e-3, "trainer.lr"),
    "EATTA": _tenth_and_tenfold(2.5e-4),
    "HILTTA": _tenth_and_tenfold(1e-5, "labelled_lr"),
    "CPATTA": _tenth_and_tenfold(1e-3),
    "BiTTA": _tenth_and_tenfold(1e-4),
    "Enhanced Tent": _tenth_and_tenfold(1e-3),
    "Anchor head, random labels": Choice("hedge", (0.1, 0.9)),
}
_TRAINER = {"SimATTA": "distilling"}  # to name with a setting of a trainer that is the default


def grid_tables(published: Mapping[str, Any]) -> dict[str, Any]:
    """The suite that tries all settings."""
    tables = copy_tables(published)
    streams = [one for one in tables["grid"]["streams"] if one["order"] == CHOSEN_ON]
    methods = [variant for entry in tables["grid"]["methods"] for variant in _variants(entry)]
    return {
        **tables,
        "name": "settings to choose from",
        "folder": "results/leaderboard-grid",
        "layout": "plain",
        "grid": {"seeds": [SEED], "streams": streams, "methods": methods},
    }


def tuned_tables(published: Mapping[str, Any], data_set: str) -> dict[str, Any]:
    """The suite of the chosen settings on one data set, from the results of the grid."""
    tables = copy_tables(published)
    best = _best(published, data_set)
    streams = [
        one
        for one in tables["grid"]["streams"]
        if one["name"] == data_set and one["order"] in REPORTED_ON
    ]
    methods = [{**one, "label": label} for label, one in best.items()]
    return {
        **tables,
        "name": f"chosen settings on {data_set}",
        "folder": f"results/leaderboard-tuned/{data_set}",
        "grid": {**tables["grid"], "streams": streams, "methods": methods},
    }


def _variants(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A method with its published setting, and with the others."""
    yield dict(entry)
    choice = CHOICES.get(entry["label"])
    if choice is None:
        return
    for value in choice.values:
        changed = copy_tables(entry)
        if choice.setting.startswith("trainer.") and "trainer" not in changed["method"]:
            changed["method"]["trainer"] = {"name": _TRAINER[entry["label"]]}
        put_value(changed["method"], choice.setting.split("."), value, where=entry["label"])
        yield {**changed, "label": f"{entry['label']}, {choice.setting}={value:g}"}


def _best(published: Mapping[str, Any], data_set: str) -> dict[str, dict[str, Any]]:
    """The entry with the best accuracy of each method; of equal ones the published one."""
    tables = grid_tables(published)
    entries = {one["label"]: one for one in tables["grid"]["methods"]}
    cells = [one for one in expand(parse_suite(tables)) if one.experiment.stream.name == data_set]
    accuracy = {cell.method: _accuracy(cell) for cell in cells}
    found = {}
    for entry in published["grid"]["methods"]:
        labels = [one["label"] for one in _variants(entry)]
        found[entry["label"]] = entries[max(labels, key=accuracy.__getitem__)]
    return found


def _accuracy(cell: Cell) -> float:
    run = read_run(ROOT / cell.folder)
    return float(run.end["stream_accuracy"]) if run.end else -1.0


def as_toml(tables: Mapping[str, Any], comment: str) -> str:
    """A suite as a file, with one line for each stream and method."""
    plain = {name: value for name, value in tables.items() if name != "grid"}
    grid = tables["grid"]
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"{name} = {_inline(value)}" for name, value in plain.items()]
    lines += ["", "[grid]", f"seeds = {_inline(grid['seeds'])}"]
    for name in ("streams", "methods"):
        rows = [f"    {_inline(one)}," for one in grid[name]]
        lines += [f"{name} = [", *rows, "]"]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {_inline(one)}" for name, one in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return json.dumps(name) if "." in name else name


def best_entries() -> dict[str, dict[str, dict[str, Any]]]:
    """What was chosen: by data set and label, the entry of the grid that was best."""
    published = read_tables(FILES / "published.toml", "a suite")
    return {name: _best(published, name) for name in tried_sets()}


def tried_sets() -> list[str]:
    """The data sets on which all settings of the grid were tried."""
    missing = missing_streams(FILES / "grid.toml")
    streams = load_suite(FILES / "grid.toml").grid.streams
    return [str(one.settings["name"]) for one in streams if one.label not in missing]


def grid_file() -> dict[Path, str]:
    """The suite that tries all settings, by where it is written."""
    comment = "Three settings for each method, tried on a seed that is not reported. Written by\n\n"
    comment += "    python benchmarks/leaderboard_grid.py write"
    published = read_tables(FILES / "published.toml", "a suite")
    return {FILES / "grid.toml": as_toml(grid_tables(published), comment)}


def tuned_files() -> dict[Path, str]:
    """The suites of the chosen settings, by where they are written."""
    comment = "The best of three settings for each method (grid.toml). Written by\n\n"
    comment += "    python benchmarks/leaderboard_grid.py choose"
    published = read_tables(FILES / "published.toml", "a suite")
    return {
        FILES / f"tuned-{name}.toml": as_toml(tuned_tables(published, name), comment)
        for name in tried_sets()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["write", "choose"])
    what = parser.parse_args(arguments).what
    for path, text in (grid_file() if what == "write" else tuned_files()).items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
