"""Line charts for web pages: what the reports and the dashboard of the service share."""

from __future__ import annotations

import re
from importlib import resources

__all__ = ["inline_script", "inline_style", "read_assets"]


def read_assets() -> dict[str, str]:
    """Read the scripts and styles that pages share, by file name.

    >>> sorted(read_assets())
    ['charts.css', 'charts.js', 'colours.css', 'dom.js']
    """
    folder = resources.files(__name__).iterdir()
    found = (file for file in folder if file.name.endswith((".css", ".js")))
    return {file.name: file.read_text(encoding="utf-8") for file in found}


def inline_script(script: str) -> str:
    """Join the chart modules and a page's own script into one module that imports nothing.

    >>> "import {" in inline_script('import { draw } from "./dom.js";')
    False
    """
    assets = read_assets()
    joined = "\n".join([assets["dom.js"], assets["charts.js"], script])
    return re.sub(r'^import \{.*\} from ".*";\n?', "", joined, flags=re.MULTILINE)


def inline_style(style: str) -> str:
    """Put the styles that pages share before a page's own style."""
    assets = read_assets()
    return "\n".join([assets["colours.css"], assets["charts.css"], style])
