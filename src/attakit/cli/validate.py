"""`attakit validate surfaces`, `entropy` and `clustering`: the paper's validation experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from attakit.cli.bars import late_bar, training_bar
from attakit.cli.option_groups import expand_options
from attakit.cli.options import Json, Quiet
from attakit.cli.output import interruptible, print_json, say
from attakit.paper.validation import (
    DATA_DEFAULTS,
    PLANS,
    ClusteringSettings,
    EntropySettings,
    Fitting,
    SurfaceSettings,
    Testbed,
    compare_entropy_sets,
    compute_surfaces,
    follow_clustering,
    load_testbed,
)
from attakit.paper.validation.clustering_plot import draw_clustering
from attakit.paper.validation.entropy_plot import draw_entropy_sets, entropy_table
from attakit.paper.validation.surface_plot import LossSurface, draw_surfaces

_STOPPED = "Stopped. Finished models are kept. Run the same command to continue."

Data = Annotated[str, typer.Option(help=f"Data set: {' or '.join(DATA_DEFAULTS)}.")]


@dataclass(frozen=True)
class CommonOptions:
    """Where data and models come from, and where results go."""

    folder: Annotated[
        Path | None, typer.Option(help="Folder for results and figures; by default figures/DATA.")
    ] = None
    root: Annotated[
        Path | None, typer.Option(help="Folder of the images, for data sets in folders.")
    ] = None
    weights: Annotated[
        Path | None, typer.Option(help="Source model, as written by `attakit pretrain`.")
    ] = None
    start: Annotated[
        Path | None,
        typer.Option(help="Weights from before training on the source, such as ImageNet weights."),
    ] = None
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto"
    quiet: Quiet = False
    as_json: Json = False

    @property
    def is_silent(self) -> bool:
        return self.quiet or self.as_json

    def testbed(self, data: str, test_samples: int = Testbed.test_samples) -> Testbed:
        return Testbed(data, self.root, self.weights, self.start, test_samples, self.device)

    def output(self, data: str) -> Path:
        """The folder to write to."""
        return Path("figures") / data if self.folder is None else self.folder


@dataclass(frozen=True)
class TrainingOptions:
    """How models are trained and tested."""

    updates: Annotated[int, typer.Option(help="Optimiser steps per model.")] = 150
    lr: Annotated[float | None, typer.Option(help="Learning rate; by default the data set's.")] = (
        None
    )
    batch_size: Annotated[
        int | None, typer.Option(help="Samples per update; by default the data set's.")
    ] = None
    test_samples: Annotated[int, typer.Option(help="Target samples kept for testing.")] = 1000
    workers: Annotated[
        int | None, typer.Option(help="Processes, one thread each; by default one per core.")
    ] = None

    def fitting(self, testbed: Testbed) -> Fitting:
        defaults = testbed.defaults
        return Fitting(
            self.updates,
            defaults.lr if self.lr is None else self.lr,
            defaults.batch_size if self.batch_size is None else self.batch_size,
        )


app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command()
@expand_options
def surfaces(
    data: Data = "digits",
    only: Annotated[
        list[str] | None, typer.Option(help=f"Compute only these surfaces: {', '.join(PLANS)}.")
    ] = None,
    points: Annotated[int, typer.Option(help="Number of values of λ₀ and of w₀.")] = 11,
    large: Annotated[int, typer.Option(help="N of the larger surfaces.")] = 2000,
    small: Annotated[int, typer.Option(help="N of the smaller surfaces.")] = 500,
    seeds: Annotated[int, typer.Option(help="Models per cell, to average over.")] = 1,
    *,
    training: TrainingOptions,
    common: CommonOptions,
) -> None:
    """Plot losses over the share λ₀ and the weight w₀ of source samples.

    Finished models are kept: a second call continues where the first one stopped.
    """
    testbed = common.testbed(data, training.test_samples)
    settings = SurfaceSettings(points=points, large=large, small=small, seeds=seeds)
    folder = common.output(data)
    with interruptible(_STOPPED), late_bar("surfaces", quiet=common.is_silent) as show:
        _prepare(testbed, quiet=common.is_silent)
        found = compute_surfaces(
            testbed,
            list(only or PLANS),
            folder / "surfaces.jsonl",
            settings=settings,
            fitting=training.fitting(testbed),
            workers=training.workers,
            progress=lambda done, total: show(done, total, "models"),
        )
    files = {name: folder / f"surface-{name}.png" for name in found}
    for name, surface in found.items():
        draw_surfaces([surface], files[name])
    if len(found) > 1:
        files["all"] = folder / "surfaces.png"
        draw_surfaces(list(found.values()), files["all"])
    numbers = {"surfaces": {name: _summary(found[name]) for name in found}}
    _print_results(common, numbers, files, _surface_table(found))


@app.command()
@expand_options
def entropy(
    data: Data = "digits",
    retrain: Annotated[
        int | None, typer.Option(help="Samples to retrain on; by default the data set's.")
    ] = None,
    fine_tune: Annotated[int, typer.Option(help="Samples to fine-tune on.")] = 300,
    seeds: Annotated[int, typer.Option(help="Models per row, to average over.")] = 3,
    *,
    training: TrainingOptions,
    common: CommonOptions,
) -> None:
    """Train on samples of low and of high entropy, to see which domain they resemble."""
    testbed = common.testbed(data, training.test_samples)
    retrain = testbed.defaults.retrain_samples if retrain is None else retrain
    settings = EntropySettings(retrain=retrain, fine_tune=fine_tune, seeds=seeds)
    folder = common.output(data)
    with interruptible(_STOPPED), late_bar("entropy", quiet=common.is_silent) as show:
        _prepare(testbed, quiet=common.is_silent)
        rows = compare_entropy_sets(
            testbed,
            folder / "entropy.jsonl",
            settings=settings,
            fitting=training.fitting(testbed),
            workers=training.workers,
            progress=lambda done, total: show(done, total, "models"),
        )
    files = {"entropy": folder / "entropy.png"}
    draw_entropy_sets(rows, files["entropy"])
    table = entropy_table(rows, title=f"Losses after training, {data}")
    _print_results(common, {"rows": [asdict(row) for row in rows]}, files, table)


@app.command()
@expand_options
def clustering(
    data: Data = "digits",
    steps: Annotated[int, typer.Option(help="Number of steps.")] = 5,
    batch_size: Annotated[int, typer.Option(help="New samples per step.")] = 100,
    initial_clusters: Annotated[int, typer.Option(help="Clusters in the first step.")] = 10,
    cluster_growth: Annotated[int, typer.Option(help="Clusters added per step.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of samples, clusters and positions.")] = 0,
    *,
    common: CommonOptions,
) -> None:
    """Plot incremental clustering step by step: clusters left, chosen anchors right."""
    testbed = common.testbed(data)
    settings = ClusteringSettings(steps, batch_size, initial_clusters, cluster_growth, seed)
    with interruptible("Stopped. Nothing was written."):
        _prepare(testbed, quiet=common.is_silent)
        found = follow_clustering(testbed, settings)
    files = {"clustering": common.output(data) / "clustering.png"}
    draw_clustering(found, files["clustering"])
    steps_done = [
        {
            "clusters": step.cluster_count,
            "known": int(step.is_anchor.sum()),
            "chosen": int(step.is_chosen.sum()),
        }
        for step in found
    ]
    _print_results(common, {"steps": steps_done}, files)


def _prepare(testbed: Testbed, *, quiet: bool) -> None:
    """Load the data. Train a missing source model of the digits here, not once per process."""
    with training_bar(quiet=quiet) as training:
        load_testbed(testbed, training)


def _surface_table(found: dict[str, LossSurface]) -> Table:
    table = Table(title="Lowest losses, and where the minima lie relative to the line w₀ = λ₀")
    for name in ("surface", "lowest", "at λ₀", "at w₀", "mean w₀ − λ₀"):
        table.add_column(name, justify="left" if name == "surface" else "right")
    for name, surface in found.items():
        low = surface.lowest()
        shift = f"{surface.mean_shift():+.2f}"
        table.add_row(name, f"{low.loss:.3f}", f"{low.share:.2f}", f"{low.weight:.2f}", shift)
    return table


def _summary(surface: LossSurface) -> dict[str, object]:
    return {
        "title": surface.title,
        "lowest": asdict(surface.lowest()),
        "lowest_per_share": [asdict(low) for low in surface.lowest_per_share()],
        "mean_shift": surface.mean_shift(),
    }


def _print_results(
    common: CommonOptions,
    numbers: Mapping[str, object],
    files: dict[str, Path],
    table: Table | None = None,
) -> None:
    if common.as_json:
        figures = {name: str(path.resolve()) for name, path in files.items()}
        print_json({**numbers, "figures": figures})
    elif not common.quiet:
        if table is not None:
            Console().print(table)
        for path in files.values():
            say(f"Figure: {path.resolve()}")
