"""`attakit run`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from attakit.bench.run import RunCallbacks, run_experiment
from attakit.cli.bars import counting_bar, training_bar
from attakit.cli.options import ExperimentFile, Json, Overrides, Quiet
from attakit.cli.output import interruptible, print_json, say
from attakit.errors import StateError
from attakit.report.comparisons import compare
from attakit.report.console import Progress, print_table
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.label_gain import label_gain
from attakit.report.runs import read_run
from attakit.report.summaries import summarise
from attakit.report.tables import method_table
from attakit.settings.load import load_experiment


def run(
    experiment: ExperimentFile,
    override: Overrides = None,
    oracle: Annotated[
        str | None, typer.Option(help="Who answers: 'known' labels, or 'ask' you in the terminal.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped run.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete earlier results in the folder.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Adapt a model along a stream, as described by an experiment file."""
    overrides = list(override or [])
    if oracle is not None:
        overrides.append(f'labels.oracle="{oracle}"')
    tables = load_experiment(experiment, overrides)
    folder = tables.report.folder
    silent = quiet or as_json
    console = Console(stderr=True)
    with (
        interruptible("Stopped before the first step. Start it again."),
        training_bar(quiet=silent) as training,
        counting_bar("checking", "files", quiet=silent) as checking,
        counting_bar("scoring", "samples", quiet=silent) as scoring,
    ):
        callbacks = RunCallbacks(
            observers=lambda stream, accuracy, start: [
                Progress(
                    tables.label,
                    steps=len(stream),
                    accuracy=accuracy,
                    done=start,
                    quiet=silent or tables.asks,
                )
            ],
            write=lambda line: console.print(escape(line), highlight=False, soft_wrap=True),
            training=training,
            checking=checking,
            scoring=scoring,
        )
        end = run_experiment(tables, resume=resume, replace=replace, callbacks=callbacks)
    gain = _label_gain(folder)
    if as_json:
        print_json({"folder": str(folder), **end, **({"label_gain": gain} if gain else {})})
    elif not quiet:
        print_table(method_table(summarise([read_run(folder)]), notes=[gain] if gain else []))
        say(f"Results: {folder}")


def _label_gain(folder: Path) -> str:
    """Return the gain of a run's labels, if folders next to it hold runs on the same stream."""
    own = read_run(folder)
    others = []
    for place in sorted(folder.resolve().parent.glob(f"*/{STEPS_FILE}")):
        with suppress(StateError, OSError):  # a problem of another run must not stop this one
            if place.parent != folder.resolve():
                others.append(read_run(place.parent))
    found = next(one for one in compare([own, *others]) if own in one.runs)
    return label_gain(found.runs, subject=own.label)
