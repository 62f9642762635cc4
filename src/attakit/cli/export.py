"""`attakit export`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from attakit.bench.exportable import run_model
from attakit.bench.run_folder import has_run
from attakit.build.exportable import Exportable, exportable_source
from attakit.cli.options import DatabaseUrl, Json, Overrides, Quiet
from attakit.cli.output import interruptible, print_json, say
from attakit.errors import SettingError, needs_extra
from attakit.nn.export import FormatName, choose_format, export_model
from attakit.settings.load import load_experiment, read_tables

_FROZEN = " Its statistics are frozen: it no longer follows the stream."


def export(
    place: Annotated[
        Path,
        typer.Argument(metavar="FROM", help="A run's or service's folder, or an experiment file."),
    ],
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")],
    form: Annotated[
        FormatName | None,
        typer.Option("--format", help="File format; by default derived from the file's ending."),
    ] = None,
    version: Annotated[
        int | None, typer.Option(help="Version of a service's model; by default the one in use.")
    ] = None,
    database: DatabaseUrl = None,
    override: Overrides = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing file.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write an adapted model to a file for other programs, and check its answers."""
    choose_format(out, form)  # complains before a model is built
    with interruptible("Stopped. Nothing was written."):
        model, facts = _find_model(place, version, database, override or [])
        exported = export_model(model, out, facts, form=form, replace_file=replace)
    if as_json:
        written = {"file": str(out), "format": exported.format, "difference": exported.difference}
        print_json({**written, **asdict(exported.facts)})
    elif not quiet:
        say(
            f"Wrote {out} ({exported.format}): {exported.facts.origin}, weights "
            f"{exported.facts.weights}. Its answers differ from the model's by at most "
            f"{exported.difference:.1g}.{_FROZEN if exported.facts.head_layers is not None else ''}"
        )


def _find_model(
    place: Path, version: int | None, database: str | None, overrides: list[str]
) -> Exportable:
    if _is_service(place):
        if overrides:
            raise SettingError(
                f"export: --set is for experiment files, but {place} is a service. Leave --set out."
            )
        return _service_model(place, version, database)
    if version is not None or database is not None:
        raise SettingError(
            f"export: --version and --database are for services, but {place} is not one. Leave "
            f"them out, or give a service's folder."
        )
    if place.is_file():
        return exportable_source(load_experiment(place, overrides))
    if overrides:
        raise SettingError(
            f"export: --set is for experiment files, but {place} is a run. Leave --set out."
        )
    if place.is_dir() and has_run(place):
        return run_model(place)
    raise SettingError(
        f"export: {place} is neither the folder of a run (`attakit run`) nor of a service "
        f"(`attakit serve`), nor an experiment file. Check the path."
    )


def _service_model(place: Path, version: int | None, database: str | None) -> Exportable:
    with needs_extra("Exporting from a service", "service"):
        # Here, because runs are exported without the packages of the service.
        from attakit.service.exportable import service_model  # noqa: PLC0415
    return service_model(place, version, database)


def _is_service(place: Path) -> bool:
    if place.is_dir():
        return (place / "settings.json").is_file() and not has_run(place)
    return place.is_file() and "classes" in read_tables(place, "an experiment")
