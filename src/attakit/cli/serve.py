"""`attakit serve`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from attakit.bench.demo import prepare_demo
from attakit.bench.load import apply_overrides, read_tables
from attakit.cli.extra_parts import import_service
from attakit.cli.options import Overrides, Quiet
from attakit.cli.talking import interruptible, say, training_bar
from attakit.errors import SettingError

DEMO_FOLDER = Path("service-demo")


def serve(
    file: Annotated[Path | None, typer.Argument(metavar="[SERVICE.toml]")] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve digits, with a stream and people of its own.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where everything is kept; by default what the file says.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="0 takes any.")] = None,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Put a model behind HTTP, ask people about a few samples, and learn from their answers."""
    if demo == (file is not None):
        raise SettingError("serve: give either a service file or --demo.")
    serving, loading = import_service("serve"), import_service("load")
    tables = read_tables(file, "a service") if file else _demo_tables(folder, quiet=quiet)
    given = {"folder": folder and str(folder), "server.host": host, "server.port": port}
    words = [f"{name}={value}" for name, value in given.items() if value is not None]
    settings = loading.parse_settings(
        apply_overrides(tables, [*words, *(override or [])]), where=str(file or "--demo")
    )
    import_service("logs").log_as_json(settings.folder / "service.log")
    with interruptible("Stopped."), ExitStack() as stack:

        def tell(address: str) -> None:
            if demo:
                stack.enter_context(import_service("demo").lively(address))
            if not quiet:
                say(_greeting(address, settings.folder))

        serving.serve(settings, started=tell)


def _demo_tables(folder: Path | None, *, quiet: bool) -> dict[str, Any]:
    with interruptible("Stopped."), training_bar(quiet=quiet) as training:
        prepare_demo(training)
    tables: dict[str, Any] = import_service("demo").demo_tables(folder or DEMO_FOLDER)
    return tables


def _greeting(address: str, folder: Path) -> str:
    return (
        f"Serving on {address}\n"
        f"  dashboard  {address}/\n"
        f"  labelling  {address}/label\n"
        f"  reference  {address}/docs\n"
        f"Everything is kept in {folder}; logs in {folder / 'service.log'}. Ctrl-C stops it."
    )
