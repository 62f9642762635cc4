"""`attakit card`."""

from __future__ import annotations

from attakit.build.data import load_task
from attakit.build.models import source_classifier, weights_file, write_card
from attakit.cli.options import ExperimentFile, Json, Overrides, Quiet
from attakit.cli.output import print_json, say
from attakit.settings.load import load_experiment


def card(
    experiment: ExperimentFile,
    override: Overrides = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Describe source data in a small file next to a model's weights.

    The file says what source samples look like to the model. With it,
    anchor_head recognises such samples and leaves them to the source model.
    `attakit pretrain` writes the file too.
    """
    tables = load_experiment(experiment, override or [])
    task = load_task(tables.stream)
    model = source_classifier(tables, task)
    path = write_card(model, task, weights_file(tables, task))
    if as_json:
        print_json({"card": str(path)})
    elif not quiet:
        say(f"Wrote {path}.")
