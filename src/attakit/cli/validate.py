"""`attakit validate surfaces`, `entropy` and `clustering`: the paper's validation experiments."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from attakit.cli.bars import late_bar, training_bar
from attakit.cli.options import Json, Quiet
from attakit.cli.output import interruptible, print_json, say
from attakit.paper.validation import (
    PLANS,
    USUAL,
    ClusteringSettings,
    EntropySettings,
    Fitting,
    SurfaceSettings,
    Testbed,
    compare_entropy_sets,
    compute_surfaces,
    follow_clustering,
    load_material,
)
from attakit.paper.validation.clustering_plot import draw_clustering
from attakit.paper.validation.entropy_plot import draw_entropy_sets, entropy_table
from attakit.paper.validation.loss_surface import Surface
from attakit.paper.validation.surface_plot import draw_surfaces

_STOPPED = "Stopped. Finished models are kept. Run the same command to continue."

Data = Annotated[str, typer.Option(help=f"Data set: {' or '.join(USUAL)}.")]
Folder = Annotated[
    Path | None, typer.Option(help="Folder for results and figures; by default figures/DATA.")
]
Root = Annotated[Path | None, typer.Option(help="Folder of the images, for data sets in folders.")]
Weights = Annotated[
    Path | None, typer.Option(help="Source model, as written by `attakit pretrain`.")
]
Start = Annotated[
    Path | None,
    typer.Option(help="Weights from before training on the source, such as ImageNet weights."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
TestSamples = Annotated[int, typer.Option(help="Target samples kept for testing.")]
Updates = Annotated[int, typer.Option(help="Optimiser steps per model.")]
Lr = Annotated[float | None, typer.Option(help="Learning rate; by default the data set's.")]
BatchSize = Annotated[
    int | None, typer.Option(help="Samples per update; by default the data set's.")
]
Workers = Annotated[
    int | None, typer.Option(help="Processes, one thread each; by default one per core.")
]

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command()
def surfaces(
    data: Data = "digits",
    only: Annotated[
        list[str] | None, typer.Option(help=f"Compute only these surfaces: {', '.join(PLANS)}.")
    ] = None,
    points: Annotated[int, typer.Option(help="Number of values of λ₀ and of w₀.")] = 11,
    large: Annotated[int, typer.Option(help="N of the larger surfaces.")] = 2000,
    small: Annotated[int, typer.Option(help="N of the smaller surfaces.")] = 500,
    seeds: Annotated[int, typer.Option(help="Models per cell, to average over.")] = 1,
    updates: Updates = 150,
    lr: Lr = None,
    batch_size: BatchSize = None,
    test_samples: TestSamples = 1000,
    workers: Workers = None,
    folder: Folder = None,
    root: Root = None,
    weights: Weights = None,
    start: Start = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Plot losses over the share λ₀ and the weight w₀ of source samples.

    Finished models are kept: a second call continues where the first one stopped.
    """
    testbed = Testbed(data, root, weights, start, test_samples, device)
    settings = SurfaceSettings(points=points, large=large, small=small, seeds=seeds)
    fitting = _fitting(testbed, updates, lr, batch_size)
    place = _folder(folder, data)
    silent = quiet or as_json
    with interruptible(_STOPPED), late_bar("surfaces", quiet=silent) as show:
        _prepare(testbed, quiet=silent)
        found = compute_surfaces(
            testbed,
            list(only or PLANS),
            place / "surfaces.jsonl",
            settings=settings,
            fitting=fitting,
            workers=workers,
            progress=lambda done, total: show(done, total, "models"),
        )
    files = {name: place / f"surface-{name}.png" for name in found}
    for name, surface in found.items():
        draw_surfaces([surface], files[name])
    if len(found) > 1:
        files["all"] = place / "surfaces.png"
        draw_surfaces(list(found.values()), files["all"])
    if as_json:
        print_json({"surfaces": {name: _summary(found[name]) for name in found}, **_paths(files)})
    elif not quiet:
        Console().print(_surface_table(found))
        _say_files(files)


@app.command()
def entropy(
    data: Data = "digits",
    retrain: Annotated[
        int | None, typer.Option(help="Samples to retrain on; by default the data set's.")
    ] = None,
    fine_tune: Annotated[int, typer.Option(help="Samples to fine-tune on.")] = 300,
    seeds: Annotated[int, typer.Option(help="Models per row, to average over.")] = 3,
    updates: Updates = 150,
    lr: Lr = None,
    batch_size: BatchSize = None,
    test_samples: TestSamples = 1000,
    workers: Workers = None,
    folder: Folder = None,
    root: Root = None,
    weights: Weights = None,
    start: Start = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train on samples of low and of high entropy, to see which domain they resemble."""
    testbed = Testbed(data, root, weights, start, test_samples, device)
    retrain = testbed.usual.retrain_samples if retrain is None else retrain
    settings = EntropySettings(retrain=retrain, fine_tune=fine_tune, seeds=seeds)
    fitting = _fitting(testbed, updates, lr, batch_size)
    place = _folder(folder, data)
    silent = quiet or as_json
    with interruptible(_STOPPED), late_bar("entropy", quiet=silent) as show:
        _prepare(testbed, quiet=silent)
        rows = compare_entropy_sets(
            testbed,
            place / "entropy.jsonl",
            settings=settings,
            fitting=fitting,
            workers=workers,
            progress=lambda done, total: show(done, total, "models"),
        )
    files = {"entropy": place / "entropy.png"}
    draw_entropy_sets(rows, files["entropy"])
    if as_json:
        print_json({"rows": [asdict(row) for row in rows], **_paths(files)})
    elif not quiet:
        Console().print(entropy_table(rows, title=f"Losses after training, {data}"))
        _say_files(files)


@app.command()
def clustering(
    data: Data = "digits",
    steps: Annotated[int, typer.Option(help="Number of steps.")] = 5,
    batch_size: Annotated[int, typer.Option(help="New samples per step.")] = 100,
    initial_clusters: Annotated[int, typer.Option(help="Clusters in the first step.")] = 10,
    cluster_growth: Annotated[int, typer.Option(help="Clusters added per step.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of samples, clusters and positions.")] = 0,
    folder: Folder = None,
    root: Root = None,
    weights: Weights = None,
    start: Start = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Plot incremental clustering step by step: clusters left, chosen anchors right."""
    testbed = Testbed(data, root, weights, start, device=device)
    settings = ClusteringSettings(steps, batch_size, initial_clusters, cluster_growth, seed)
    with interruptible("Stopped. Nothing was written."):
        _prepare(testbed, quiet=quiet or as_json)
        found = follow_clustering(testbed, settings)
    files = {"clustering": _folder(folder, data) / "clustering.png"}
    draw_clustering(found, files["clustering"])
    if as_json:
        numbers = [
            {
                "clusters": step.cluster_count,
                "known": int(step.is_anchor.sum()),
                "chosen": int(step.is_chosen.sum()),
            }
            for step in found
        ]
        print_json({"steps": numbers, **_paths(files)})
    elif not quiet:
        _say_files(files)


def _fitting(testbed: Testbed, updates: int, lr: float | None, batch_size: int | None) -> Fitting:
    usual = testbed.usual
    return Fitting(
        updates,
        usual.lr if lr is None else lr,
        usual.batch_size if batch_size is None else batch_size,
    )


def _folder(folder: Path | None, data: str) -> Path:
    return Path("figures") / data if folder is None else folder


def _prepare(testbed: Testbed, *, quiet: bool) -> None:
    """Load the data. Train a missing source model of the digits here, not once per process."""
    with training_bar(quiet=quiet) as training:
        load_material(testbed, training)


def _surface_table(found: dict[str, Surface]) -> Table:
    table = Table(title="Lowest losses, and where the minima lie beside the line w₀ = λ₀")
    for name in ("surface", "lowest", "at λ₀", "at w₀", "mean w₀ − λ₀"):
        table.add_column(name, justify="left" if name == "surface" else "right")
    for name, surface in found.items():
        low = surface.lowest()
        shift = f"{surface.mean_shift():+.2f}"
        table.add_row(name, f"{low.loss:.3f}", f"{low.share:.2f}", f"{low.weight:.2f}", shift)
    return table


def _summary(surface: Surface) -> dict[str, object]:
    return {
        "title": surface.title,
        "lowest": asdict(surface.lowest()),
        "lowest_per_share": [asdict(low) for low in surface.lowest_per_share()],
        "mean_shift": surface.mean_shift(),
    }


def _paths(files: dict[str, Path]) -> dict[str, dict[str, str]]:
    return {"figures": {name: str(path.resolve()) for name, path in files.items()}}


def _say_files(files: dict[str, Path]) -> None:
    for path in files.values():
        say(f"Figure: {path.resolve()}")
