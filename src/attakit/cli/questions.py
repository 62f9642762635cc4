"""`attakit questions`: export a service's questions to other tools, and import the answers."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from attakit.cli.options import DatabaseUrl, Json, Quiet
from attakit.cli.output import print_json, say
from attakit.errors import SettingError
from attakit.files import atomic_write
from attakit.service.exchange import (
    FileFormat,
    choose_file_format,
    label_config,
    read_answers,
    write_questions,
)
from attakit.service.saved_settings import find_settings, open_service
from attakit.service.storage import Storage
from attakit.settings.service import ServiceSettings

SOME_REFUSED = 1
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # the first bytes of such files; spreadsheets write them

ServicePlace = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="The service's folder, or its TOML file.")
]
FormatOption = Annotated[
    FileFormat | None,
    typer.Option("--format", help="File format; by default derived from the file's ending."),
]

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command("export")
def export_questions(
    folder: ServicePlace,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file to write; by default standard output."),
    ] = None,
    form: FormatOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also export closed questions, with their answers.")
    ] = False,
    image_url: Annotated[
        str | None,
        typer.Option(help="The service's address, if the file should link to its images."),
    ] = None,
    database: DatabaseUrl = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing file.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Export the open questions of a service, to be answered in another tool."""
    form = form or ("jsonl" if out is None else choose_file_format(out))
    if out is not None and out.exists() and not replace:
        raise SettingError(f"{out} exists already. Choose another file, or use --replace.")
    # Without the byte order mark, spreadsheets assume the encoding of the country they run in.
    encoding = "utf-8-sig" if form == "csv" else "utf-8"
    with (
        _opened(folder, database) as (settings, storage),
        nullcontext(sys.stdout) if out is None else _writing(out, encoding) as stream,
    ):
        count = write_questions(
            storage,
            stream,
            form,
            classes=settings.classes,
            everything=everything,
            image_url=image_url,
        )
    if out is None:
        return
    if as_json:
        print_json({"file": str(out), "format": form, "questions": count})
    elif not quiet:
        say(f"Wrote {count:,} questions to {out}.")


@app.command("import")
def import_answers(
    folder: ServicePlace,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file with the answers.")],
    form: FormatOption = None,
    annotator: Annotated[
        str, typer.Option(help="Annotator of the answers for which the file names none.")
    ] = "import",
    database: DatabaseUrl = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Import answers from another tool; importing them twice changes nothing."""
    form = choose_file_format(file, form)
    text = io.StringIO(_read(file), newline="")
    with _opened(folder, database) as (settings, storage):
        report = read_answers(storage, text, form, annotator, classes=settings.classes)
    if as_json:
        print_json(asdict(report))
    elif not quiet:
        _print_report(asdict(report), file, "task" if form == "label-studio" else "line")
    if report.problems:
        raise typer.Exit(SOME_REFUSED)


@app.command("label-config")
def show_label_config(folder: ServicePlace) -> None:
    """Print the labelling interface that Label Studio needs for these questions."""
    settings = find_settings(folder)
    yes_no = settings.labels.question == "yes_no"
    pictures = settings.input.kind == "image"
    sys.stdout.write(label_config(settings.classes, yes_no=yes_no, pictures=pictures) + "\n")


@contextmanager
def _opened(folder: Path, database: str | None) -> Iterator[tuple[ServiceSettings, Storage]]:
    """Open a service: its settings and its storage."""
    settings = find_settings(folder)
    with open_service(settings, database) as storage:
        yield settings, storage


def _print_report(report: dict[str, Any], file: Path, unit: str) -> None:
    problems = report.pop("problems")
    counts = [f"{count:,} {name}" for name, count in report.items() if count]
    say(f"Answers: {', '.join(counts) or 'none in the file'}.")
    for problem in problems:
        say(f"{file.name}, {unit} {problem['line']}: {problem['reason']}.")


def _read(file: Path) -> str:
    """Read a whole file before anything is imported, so that a broken one changes nothing."""
    if not file.is_file():
        raise SettingError(f"There is no file {file} with answers. Check its name.")
    content = file.read_bytes()
    try:
        return content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingError(
            f"{file} is not text in UTF-8 ({error.reason} at byte {error.start}). Save it again "
            f"with that encoding; spreadsheets call it CSV UTF-8."
        ) from error


@contextmanager
def _writing(out: Path, encoding: str) -> Iterator[TextIO]:
    """Write to a temporary file that gets its name when it is complete."""
    try:
        with (
            atomic_write(out) as draft,
            draft.open("w", encoding=encoding, newline="") as stream,
        ):
            yield stream
    except OSError as error:
        raise SettingError(
            f"{out} cannot be written ({error.strerror}). Free some space or choose another file."
        ) from error
