"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.NAME=VALUE", help="Override a setting in the file."),
]
ExperimentFile = Annotated[
    Path, typer.Argument(metavar="EXPERIMENT.toml", help="The experiment file.")
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="ATTAKIT_DATABASE",
        show_envvar=True,
        help="URL of the service's database, if it is not in the service's folder.",
    ),
]
RunFolders = Annotated[
    list[Path], typer.Argument(metavar="FOLDER…", help="Run folders, or folders that contain them.")
]
