"""`attakit pretrain`."""

from __future__ import annotations

import time

from attakit.build.data import load_task
from attakit.build.models import pretrain as pretrain_source
from attakit.cli.bars import counting_bar
from attakit.cli.options import ExperimentFile, Json, Overrides, Quiet
from attakit.cli.output import interruptible, print_json, say
from attakit.report.console import WorkBar, format_metrics
from attakit.settings.load import load_experiment


def pretrain(
    experiment: ExperimentFile,
    override: Overrides = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train the source model that an experiment file describes."""
    tables = load_experiment(experiment, override or [])
    began = time.perf_counter()
    with counting_bar("checking", "files", quiet=quiet or as_json) as checking:
        task = load_task(tables.stream, checking)
    with (
        interruptible("Stopped. The same command continues from the last validation."),
        WorkBar("pretrain", total=tables.training.updates, quiet=quiet or as_json) as bar,
    ):
        training = pretrain_source(
            tables,
            task,
            progress=lambda update, metrics: bar.reach(update, format_metrics(metrics)),
        )
    written = {
        "weights": str(tables.training.weights),
        "held_out_accuracy": None if training.accuracy is None else 100 * training.accuracy,
        "update": training.update,
        "seconds": time.perf_counter() - began,
    }
    if as_json:
        print_json(written)
    elif not quiet:
        accuracy = written["held_out_accuracy"]
        shown = "" if accuracy is None else f" ({accuracy:.2f} % on held-out source samples)"
        say(f"Wrote {written['weights']}{shown}.")
