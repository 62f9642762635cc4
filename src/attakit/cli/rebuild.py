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
    with interruptible("Stopped. Run it again: it starts over."):
        rebuilt = rebuild_service(folder, database)
    if as_json:
        print_json({**asdict(rebuilt), "exact": rebuilt.is_exact})
    else:
        say(_describe(rebuilt))


def _describe(rebuilt: Rebuilt) -> str:
    lines = [f"Took {rebuilt.turns} turns again, with {rebuilt.samples} samples."]
    if rebuilt.is_exact:
        lines.append("The log was complete, so the learner knows what it knew before.")
    else:
        lines.append(
            f"The contents of {rebuilt.lost_samples} samples are gone, and {rebuilt.lost_lists} "
            f"turns no longer list theirs. What the learner knew of them is lost, labels included. "
            f"Answers, versions and the budget are unchanged, and the promoted version stays."
        )
    if rebuilt.set_aside:
        lines.append(f"Kept what was there as {', '.join(rebuilt.set_aside)}.")
    return "\n".join([*lines, "Start the service: it continues from here."])
