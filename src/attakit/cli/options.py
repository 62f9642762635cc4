"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.NAME=VALUE", help="Override a setting of the file."),
]
ExperimentFile = Annotated[Path, typer.Argument(metavar="EXPERIMENT.toml")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="ATTAKIT_DATABASE",
        show_envvar=True,
        help="URL of a service's database, if it is not in its folder.",
    ),
]
RunFolders = Annotated[
    list[Path], typer.Argument(metavar="FOLDER…", help="Runs, or folders that hold runs.")
]
