"""`attakit serve`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from attakit.cli.bars import training_bar
from attakit.cli.options import DatabaseUrl, Overrides, Quiet
from attakit.cli.output import interruptible, say
from attakit.cli.service_file import ServiceFolder, service_settings
from attakit.errors import SettingError
from attakit.service.demo import demo_tables, simulated_traffic
from attakit.service.ray_serve import serve_on_ray as run_on_ray
from attakit.service.serve import serve as run_service
from attakit.settings.load import read_tables

DEMO_FOLDER = Path("service-demo")


def serve(
    file: Annotated[
        Path | None, typer.Argument(metavar="[SERVICE.toml]", help="The service file.")
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Serve digits, with simulated visitors and a simulated annotator."
        ),
    ] = False,
    folder: ServiceFolder = None,
    database: DatabaseUrl = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port to listen on; 0 for any free one.")
    ] = None,
    is_open: Annotated[
        bool,
        typer.Option(
            "--open", help="Accept requests of this user on this machine without a token."
        ),
    ] = False,
    no_learner: Annotated[
        bool,
        typer.Option("--no-learner", help="Leave learning to `attakit learn`; needs PostgreSQL."),
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS]",
            help="Serve and learn on a Ray cluster; without an address, on the one that Ray finds.",
        ),
    ] = None,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Serve a model over HTTP, ask people for labels and learn from them."""
    if demo == (file is not None):
        raise SettingError("serve: give either a service file or --demo.")
    tables = read_tables(file, "a service") if file else _demo_tables(folder, quiet=quiet)
    given = {
        "folder": folder and str(folder),
        "database": database,
        "server.host": host,
        "server.port": port,
        "server.open": is_open or None,
    }
    settings = service_settings(tables, override, given, where=str(file or "--demo"))
    # The demo is for newcomers, so its log goes to a file and not to the screen.
    log_file = settings.folder / "service.log" if demo or quiet else None
    with interruptible("Stopped."), ExitStack() as stack:

        def greet(address: str, *, token: str | None) -> None:
            if demo:
                stack.enter_context(simulated_traffic(address))
            if not quiet:
                say(_greeting(address, log_file))
            if token is not None:  # also if quiet: it cannot be shown again
                say(_log_in(address, token))

        if ray is not None:
            run_on_ray(settings, address=ray or None, learner=not no_learner, started=greet)
        else:
            run_service(settings, started=greet, log_file=log_file, learner=not no_learner)


def _demo_tables(folder: Path | None, *, quiet: bool) -> dict[str, Any]:
    # Imported here: it brings all of the benchmark, which takes a second.
    from attakit.bench.demo import prepare_demo  # noqa: PLC0415

    with interruptible("Stopped."), training_bar(quiet=quiet) as training:
        prepare_demo(training)
    return demo_tables(folder or DEMO_FOLDER)


def _log_in(address: str, token: str) -> str:
    # What follows # stays in the browser, so that no server or proxy logs the token.
    return (
        f"Log in as administrator: {address}/login#token={token}\n"
        f"Save this address: it is shown only once. `attakit token create` makes tokens for others."
    )


def _greeting(address: str, log_file: Path | None) -> str:
    lines = [
        f"Serving on {address}",
        f"  dashboard  {address}/",
        f"  labelling  {address}/label",
        f"  reference  {address}/docs",
    ]
    if log_file is not None:
        lines.append(f"Log: {log_file}, and learner.log in the same folder")
    return "\n".join([*lines, "Stop it with Ctrl-C. The same command continues."])
