"""`attakit learn`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attakit.cli.options import DatabaseUrl, Overrides, Quiet
from attakit.cli.output import interruptible, say
from attakit.cli.service_file import ServiceFolder, service_settings
from attakit.service.learn import learn as run_learner
from attakit.settings.load import read_tables


def learn(
    file: Annotated[Path, typer.Argument(metavar="SERVICE.toml", help="The service file.")],
    folder: ServiceFolder = None,
    database: DatabaseUrl = None,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Learn for servers that run elsewhere with `attakit serve --no-learner`."""
    given = {"folder": folder and str(folder), "database": database}
    settings = service_settings(read_tables(file, "a service"), override, given, where=str(file))

    def greet() -> None:
        if not quiet:
            say("Learning, or waiting for the learner that leads. Stop it with Ctrl-C.")

    with interruptible("Stopped."):
        run_learner(settings, started=greet)
