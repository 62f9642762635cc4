"""`attakit demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attakit.bench.demo import demo_folders, prepare_demo, run_demo
from attakit.cli.bars import training_bar
from attakit.cli.options import Json, Quiet
from attakit.cli.output import interruptible, print_json, say
from attakit.report.comparisons import comparison
from attakit.report.console import WorkBar, print_table
from attakit.report.html import write_report
from attakit.report.label_gain import label_gain
from attakit.report.runs import read_run


def demo(
    folder: Annotated[Path, typer.Option(help="Folder for results and report.")] = Path(
        "runs/demo"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds to average over.")] = 3,
    share: Annotated[
        float, typer.Option(min=0.01, max=1, help="Share of the stream to use, for a quick look.")
    ] = 1.0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare six methods on digits from three shifted domains."""
    chosen = range(seeds)
    runs, report = demo_folders(folder, chosen), folder / "report.html"
    with interruptible("Stopped. Start it again with `attakit demo`."):
        with training_bar(quiet=quiet or as_json) as training:
            prepare_demo(training)
        with WorkBar("demo", total=len(runs), quiet=quiet or as_json) as bar:
            figures = run_demo(folder, chosen, share=share, progress=bar.advance)
    write_report(runs, report, "attakit demo: digits on a shifted stream")
    records = [read_run(run) for run in runs]
    if as_json:
        gain = label_gain(records)
        print_json({"methods": figures, "label_gain": gain, "report": str(report.resolve())})
    elif not quiet:
        print_table(comparison("Digits: MNIST → shifted", records).table)
        say(f"Report: {report.resolve()}")
