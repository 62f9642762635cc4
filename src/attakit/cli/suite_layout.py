"""The layout that the suite of some folders asks for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from attakit.bench.suites.cells import SUITE_FILE
from attakit.errors import StateError
from attakit.settings.suite import PLAIN


def suite_layout(folders: Sequence[Path]) -> str:
    """The layout of the one suite that all folders belong to; plain where there is no such suite.

    A folder belongs to a suite if it is the suite's own or is in it.
    """
    files = {_suite_file(folder) for folder in folders}
    file = files.pop()
    if file is None or files:
        return PLAIN
    try:
        return str(json.loads(file.read_text(encoding="utf-8")).get("layout") or PLAIN)
    except (ValueError, AttributeError) as error:
        raise StateError(
            f"{file} is damaged: it is no JSON object about a suite. Say --layout, or give "
            f"`attakit bench` again, which writes it anew."
        ) from error


def _suite_file(folder: Path) -> Path | None:
    """The list of cells of the nearest suite around a folder."""
    whole = folder.resolve()
    places = (place / SUITE_FILE for place in (whole, *whole.parents))
    return next((place for place in places if place.is_file()), None)
