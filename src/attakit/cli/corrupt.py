"""`attakit corrupt`: make a data set like ImageNet-C from clean images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from attakit.cli.bars import late_bar
from attakit.cli.options import Json, Quiet
from attakit.cli.output import interruptible, print_json, say
from attakit.errors import SettingError
from attakit.stream.corrupted_set import Recipe, WrittenCounts, write_corrupted
from attakit.stream.corruptions import CORRUPTIONS


def corrupt(
    clean: Annotated[
        Path,
        typer.Argument(
            metavar="CLEAN_FOLDER", help="Clean images, as class/image or domain/class/image."
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT_FOLDER", help="Folder to write, as corruption/severity/class/image."
        ),
    ],
    corruptions: Annotated[
        str, typer.Option(help="Comma-separated names; 'all' is the 15 of ImageNet-C.")
    ] = "all",
    severities: Annotated[str, typer.Option(help="Comma-separated numbers from 1 to 5.")] = "5",
    domains: Annotated[
        str, typer.Option(help="Comma-separated domains to take images from; by default all.")
    ] = "",
    size: Annotated[
        int | None, typer.Option(help="First scale images to this many pixels, in both directions.")
    ] = None,
    form: Annotated[
        Literal["png", "jpg"], typer.Option("--format", help="File format of the images.")
    ] = "png",
    quality: Annotated[int, typer.Option(help="JPEG quality, from 1 to 95.")] = 95,
    seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
    parameters: Annotated[
        Literal["auto", "cifar", "tiny", "imagenet"],
        typer.Option(
            help="Strengths of CIFAR-C, Tiny-ImageNet-C or ImageNet-C; auto decides by image size."
        ),
    ] = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a data set like ImageNet-C from clean images; can be resumed."""
    recipe = Recipe(size=size, form=form, quality=quality, seed=seed, parameters=parameters)
    with (
        interruptible("Stopped. Finished images are kept. Run the same command to continue."),
        late_bar("corrupt", quiet=quiet or as_json) as show,
    ):
        written: WrittenCounts = write_corrupted(
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
        kept = f", {written.kept:,} existed already" if written.kept else ""
        say(f"Wrote {written.images:,} images into {out}{kept}.")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise SettingError(f"corrupt: severities must be whole numbers from 1 to 5, got {text!r}.")
    return int(text)
