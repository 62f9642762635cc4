"""`attakit serve`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from attakit.bench.demo import prepare_demo
from attakit.cli.extra_parts import import_service
from attakit.cli.options import Overrides, Quiet
from attakit.cli.output import interruptible, say, training_bar
from attakit.errors import SettingError
from attakit.settings.load import apply_overrides, parse_service, put_value, read_tables

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
    serving = import_service("serve")
    tables = read_tables(file, "a service") if file else _demo_tables(folder, quiet=quiet)
    tables = apply_overrides(tables, override or [])
    given = {"folder": folder and str(folder), "server.host": host, "server.port": port}
    for name, value in given.items():
        if value is not None:
            put_value(tables, name.split("."), value, where=f"--{name.rpartition('.')[2]}")
    settings = parse_service(tables, where=str(file or "--demo"))
    # The demo speaks to a newcomer, so that its log stays off the screen.
    log_file = settings.folder / "service.log" if demo or quiet else None
    with interruptible("Stopped."), ExitStack() as stack:

        def tell(address: str) -> None:
            if demo:
                stack.enter_context(import_service("demo").simulated_traffic(address))
            if not quiet:
                say(_greeting(address, log_file))

        serving.serve(settings, started=tell, log_file=log_file)


def _demo_tables(folder: Path | None, *, quiet: bool) -> dict[str, Any]:
    with interruptible("Stopped."), training_bar(quiet=quiet) as training:
        prepare_demo(training)
    tables: dict[str, Any] = import_service("demo").demo_tables(folder or DEMO_FOLDER)
    return tables


def _greeting(address: str, log_file: Path | None) -> str:
    lines = [
        f"Serving on {address}",
        f"  dashboard  {address}/",
        f"  labelling  {address}/label",
        f"  reference  {address}/docs",
    ]
    if log_file is not None:
        lines.append(f"Log: {log_file}, and learner.log beside it")
    return "\n".join([*lines, "Ctrl-C stops it; the same command goes on."])
