"""The HTML report: one self-contained file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from attakit.charts import inline_script, inline_style
from attakit.errors import SettingError
from attakit.files import atomic_write
from attakit.report.colours import colour_places
from attakit.report.comparisons import Comparison, compare
from attakit.report.curves import Band, bands, curve_sets
from attakit.report.lines import as_json
from attakit.report.overview import (
    best_method,
    facts,
    group_settings,
    names_in,
    summary_table,
    tiles,
)
from attakit.report.runs import Group, RunRecord, group_runs, grouped, read_run
from attakit.report.scenes import (
    VERDICTS,
    AskedSample,
    PictureRecord,
    clustering,
    gallery,
    read_pictures,
)
from attakit.report.summaries import MethodSummary

_GALLERY_BYTES = 1_400_000  # of the three megabytes that a page may have
_MOST_SETTINGS = 40


@dataclass(frozen=True)
class GroupPictures:
    """A group of runs, with the pictures of the first run that has some."""

    group: Group
    pictures: PictureRecord
    seed: int | None = None
    asked: int = 0  # questions of the run that the pictures come from


def write_report(run_folders: Sequence[Path], path: Path, title: str) -> None:
    """Write one self-contained page about runs, finished or live, with or without pictures."""
    if not run_folders:
        raise SettingError("write_report: no runs given. Name at least one folder of a run.")
    page = render_page([(read_run(folder), folder) for folder in run_folders], title)
    with atomic_write(path) as draft:  # so that a browser never loads half a page
        draft.write_text(page, encoding="utf-8")


def render_page(runs: Sequence[tuple[RunRecord, Path]], title: str) -> str:
    """Render the page: one view per stream, one visible at a time."""
    found = [one for one in compare([run for run, _ in runs]) if one.runs]
    if not found:
        raise SettingError("write_report: no method applies, so there is nothing to show.")
    environment = Environment(
        loader=PackageLoader("attakit.report"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("report.html.j2").render(
        title=title,
        views=[_view(one, runs, _GALLERY_BYTES // len(found)) for one in found],
        **inline_assets(),
    )


def inline_assets() -> dict[str, Markup]:
    """Read the inline style and script of a page with charts, as template values."""
    folder = files("attakit.report") / "templates"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    return {"style": Markup(inline_style(style)), "script": Markup(inline_script(script))}


def _view(
    found: Comparison, runs: Sequence[tuple[RunRecord, Path]], limit_bytes: int
) -> dict[str, Any]:
    groups, summaries = group_runs(found.runs), found.summaries
    shown = [_with_pictures(group, runs) for group in groups]
    scene = _scene(shown)
    data = _data(groups, summaries, scene)
    return {
        "title": found.title,
        "notes": found.notes,
        "facts": facts(groups),
        "tiles": tiles(summaries, groups),
        "table": summary_table(found.table),
        "rows": summaries,
        "places": colour_places(one.label for one in summaries),
        "during": names_in(one.segments for one in summaries),
        "after": names_in(one.after for one in summaries),
        "has": _worth_drawing(data["curves"]),
        "several": any(one.runs > 1 for one in summaries),
        "data": embed(data),
        "scene": scene,
        "galleries": _galleries(shown, limit_bytes),
        "settings": [group_settings(group) for group in groups[:_MOST_SETTINGS]],
        "unfinished": sum(one.unfinished for one in summaries),
    }


def embed(value: Any) -> Markup:
    """Write data so that nothing in it can end its script element.

    >>> embed("</script>")
    Markup('"\\\\u003c/script\\\\u003e"')
    """
    text = as_json(value)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _with_pictures(group: Group, runs: Sequence[tuple[RunRecord, Path]]) -> GroupPictures:
    for run, folder in runs:
        if any(run is member for member in group.runs):
            pictures = read_pictures(folder if folder.is_dir() else folder.parent)
            if pictures.asked or pictures.frames:
                asked = int(run.steps[-1].get("asked") or 0) if run.steps else 0
                return GroupPictures(group, pictures, run.seed, asked)
    return GroupPictures(group, PictureRecord())


def _galleries(shown: Sequence[GroupPictures], limit_bytes: int) -> list[dict[str, Any]]:
    asking = [one for one in shown if one.pictures.asked]
    return [_gallery(one, limit_bytes // len(asking)) for one in asking]


def _gallery(one: GroupPictures, limit_bytes: int) -> dict[str, Any]:
    cards: list[AskedSample] = gallery(one.pictures, limit_bytes)
    verdicts = [card.verdict for card in cards]
    return {
        "label": one.group.label,
        "seed": one.seed,
        "parts": list(grouped(cards, lambda card: card.segment).items()),
        "counts": {name: verdicts.count(name) for name in VERDICTS},
        "shown": len(cards),
        "asked": max(one.asked, len(cards)),
    }


def _scene(shown: Sequence[GroupPictures]) -> dict[str, Any] | None:
    """Return the clustering with the richest memory: the one that builds on earlier anchors."""

    def remembered(one: GroupPictures) -> int:
        points = [point for frame in one.pictures.frames for point in frame["points"]]
        return sum(point["role"] == "known" for point in points)

    for one in sorted(shown, key=remembered, reverse=True):
        found = clustering(one.pictures)
        if found is not None:
            return {**found, "label": one.group.label, "seed": one.seed}
    return None


def _data(
    groups: Sequence[Group], summaries: Sequence[MethodSummary], scene: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "curves": curve_sets(groups),
        "bands": [[band.name, band.start, band.stop] for band in _common_bands(groups)],
        "best": getattr(best_method(summaries), "label", None),
        "scene": scene,
    }


def _common_bands(groups: Sequence[Group]) -> list[Band]:
    """Return the positions of the segments, if all runs saw them in the same order."""
    runs = [run for group in groups for run in group.runs]
    longest = max(runs, key=lambda run: len(run.steps))
    if any(run.segments != longest.segments for run in runs):
        return []
    return bands(longest)


def _worth_drawing(curves: dict[str, list[dict[str, Any]]]) -> dict[str, bool]:
    """Return which charts have something to show. For labels, a line of zeros is nothing."""
    found = {name: any(curve["y"] for curve in chart) for name, chart in curves.items()}
    return {**found, "labels": any(any(curve["y"]) for curve in curves["labels"])}
