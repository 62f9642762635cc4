"""`attakit corrupt`: make a -C set from clean images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from attakit.cli.options import Json, Quiet
from attakit.cli.output import interruptible, late_bar, print_json, say
from attakit.errors import SettingError
from attakit.stream.corrupted_set import Recipe, Written, write_corrupted
from attakit.stream.corruptions import CORRUPTIONS


def corrupt(
    clean: Annotated[
        Path,
        typer.Argument(metavar="CLEAN_FOLDER", help="Holds class/image or domain/class/image."),
    ],
    out: Annotated[
        Path, typer.Argument(metavar="OUT_FOLDER", help="Gets corruption/severity/class/image.")
    ],
    corruptions: Annotated[
        str, typer.Option(help="Names with commas between; 'all' are the 15 of ImageNet-C.")
    ] = "all",
    severities: Annotated[str, typer.Option(help="From 1 to 5, with commas between.")] = "5",
    domains: Annotated[
        str, typer.Option(help="Domains to take images from, with commas between; else all.")
    ] = "",
    size: Annotated[
        int | None, typer.Option(help="Scale images to so many pixels in both directions first.")
    ] = None,
    form: Annotated[
        Literal["png", "jpg"], typer.Option("--format", help="How to store images.")
    ] = "png",
    quality: Annotated[int, typer.Option(help="Of a jpg, from 1 to 95.")] = 95,
    seed: Annotated[int, typer.Option(help="Of the noise.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a set like ImageNet-C from a folder of clean images; goes on where it was stopped."""
    recipe = Recipe(size=size, form=form, quality=quality, seed=seed)
    with (
        interruptible("Stopped. What is written stays; start it again to go on."),
        late_bar("corrupt", quiet=quiet or as_json) as show,
    ):
        written: Written = write_corrupted(
            clean,
            out,
            corruptions=CORRUPTIONS if corruptions == "all" else _split(corruptions),
            severities=[_whole(text) for text in _split(severities)],
            domains=_split(domains),
            recipe=recipe,
            progress=show,
        )
    if as_json:
        print_json({"folder": str(out), "written": written.images, "kept": written.kept})
    elif not quiet:
        there = f", {written.kept:,} were there" if written.kept else ""
        say(f"Wrote {written.images:,} images into {out}{there}.")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise SettingError(f"corrupt: severities must be whole numbers from 1 to 5, got {text!r}.")
    return int(text)
