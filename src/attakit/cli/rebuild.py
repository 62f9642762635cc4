"""`attakit rebuild`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from attakit.cli.options import DatabaseUrl, Json
from attakit.cli.output import interruptible, print_json, say
from attakit.service.learner.rebuild import Rebuilt
from attakit.service.rebuild import rebuild as rebuild_service


def rebuild(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A stopped service's folder.")],
    database: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Rebuild a learner whose checkpoint is lost or damaged, from the log of turns."""
    with interruptible("Stopped. Run the command again. It starts from the beginning."):
        rebuilt = rebuild_service(folder, database)
    if as_json:
        print_json({**asdict(rebuilt), "exact": rebuilt.is_exact})
    else:
        say(_describe(rebuilt))


def _describe(rebuilt: Rebuilt) -> str:
    lines = [f"Replayed {rebuilt.turns} turns with {rebuilt.samples} samples."]
    if rebuilt.is_exact:
        lines.append("The log was complete, so the learner has lost nothing.")
    else:
        lines.append(
            f"The contents of {rebuilt.lost_samples} samples are gone, and {rebuilt.lost_lists} "
            "turns no longer list theirs. What the learner knew about them is lost, with their "
            "labels. Answers, versions and the budget are unchanged, and the promoted version "
            "stays."
        )
    if rebuilt.set_aside:
        lines.append(f"The files that were there are kept as {', '.join(rebuilt.set_aside)}.")
    return "\n".join([*lines, "Start the service. It continues from here."])
