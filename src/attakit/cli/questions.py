"""`attakit questions`: questions of a service go to other tools, and answers come back."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import typer

from attakit.cli.extra_parts import import_service
from attakit.cli.options import DatabaseUrl, Json, Quiet
from attakit.cli.output import print_json, say
from attakit.errors import SettingError
from attakit.files import atomic_write

SOME_REFUSED = 1
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # how such files begin; spreadsheets write them

Service = Annotated[Path, typer.Argument(metavar="FOLDER", help="Of the service, or its file.")]
Form = Annotated[
    Literal["csv", "jsonl", "label-studio"] | None,
    typer.Option("--format", help="By default what the ending says."),
]

app = typer.Typer(
    help="Take questions of a service to other tools, and answers back.", no_args_is_help=True
)


@app.command("export")
def export_questions(
    folder: Service,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write; else standard output.")
    ] = None,
    form: Form = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Closed questions and answers too.")
    ] = False,
    image_url: Annotated[
        str | None,
        typer.Option(help="Address of the service, to refer to images there."),
    ] = None,
    database: DatabaseUrl = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite a file that is there.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the open questions of a service for people who label elsewhere."""
    exchange = import_service("exchange")
    form = form or ("jsonl" if out is None else exchange.choose_file_format(out))
    if out is not None and out.exists() and not replace:
        raise SettingError(f"{out} is already there. Choose another file, or use --replace.")
    # A spreadsheet takes a file without the mark for one in the encoding of its country.
    encoding = "utf-8-sig" if form == "csv" else "utf-8"
    with (
        _opened(folder, database) as (settings, storage),
        nullcontext(sys.stdout) if out is None else _writing(out, encoding) as stream,
    ):
        count = exchange.write_questions(
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
    folder: Service,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="With the answers.")],
    form: Form = None,
    annotator: Annotated[
        str, typer.Option(help="Who answered, where the file does not say it.")
    ] = "import",
    database: DatabaseUrl = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Take answers that people gave elsewhere; doing it twice changes nothing."""
    exchange = import_service("exchange")
    form = exchange.choose_file_format(file, form)
    text = io.StringIO(_read(file), newline="")
    with _opened(folder, database) as (settings, storage):
        report = exchange.read_answers(storage, text, form, annotator, classes=settings.classes)
    if as_json:
        print_json(asdict(report))
    elif not quiet:
        _tell(asdict(report), file, "task" if form == "label-studio" else "line")
    if report.problems:
        raise typer.Exit(SOME_REFUSED)


@app.command("label-config")
def show_label_config(folder: Service) -> None:
    """Print the labelling interface that Label Studio needs for these questions."""
    settings = import_service("saved_settings").find_settings(folder)
    sys.stdout.write(import_service("exchange").label_config(settings.classes) + "\n")


@contextmanager
def _opened(folder: Path, database: str | None) -> Iterator[tuple[Any, Any]]:
    """Settings and storage of a service."""
    kept = import_service("saved_settings")
    settings = kept.find_settings(folder)
    with kept.open_service(settings, database) as storage:
        yield settings, storage


def _tell(report: dict[str, Any], file: Path, unit: str) -> None:
    problems = report.pop("problems")
    counts = [f"{count:,} {name}" for name, count in report.items() if count]
    say(f"Answers: {', '.join(counts) or 'none in the file'}.")
    for problem in problems:
        say(f"{file.name}, {unit} {problem['line']}: {problem['reason']}.")


def _read(file: Path) -> str:
    """All of a file at once, so that nothing is taken from one that cannot be read."""
    if not file.is_file():
        raise SettingError(f"There is no file {file} with answers.")
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
    """Inside, text goes to a file that gets its name once it is whole."""
    try:
        with (
            atomic_write(out) as draft,
            draft.open("w", encoding=encoding, newline="") as stream,
        ):
            yield stream
    except OSError as error:
        raise SettingError(
            f"{out} cannot be written ({error.strerror}). Make room there or choose another file."
        ) from error
