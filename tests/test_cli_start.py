"""What the command line imports, and when."""

import gc
import json
import subprocess
import sys

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from attakit.cli import app
from attakit.cli.commands import COMMANDS, load_command

HEAVY = {"torch", "sklearn", "scipy", "pandas", "matplotlib", "timm", "torchvision"}
UNUSED = {"alembic", "sqlalchemy.dialects.postgresql"}  # on SQLite, with nothing to upgrade
# Runs the program and prints which modules it imported, whatever its end is.
PROGRAM = """
import json, sys
sys.argv = ["attakit", *sys.argv[1:]]
from attakit.cli import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)))
"""


def imported_by(*arguments):
    """The modules that a command imports, and what it says on standard error."""
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False
    )
    return set(json.loads(told.stdout.splitlines()[-1])), told.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["token", "create", "Ada", "--role", "admin", "--folder", "live"],
        ["questions", "export", "service.toml"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_needs_no_model_starts_without_torch(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "service.toml").write_text('folder = "live"\nclasses = ["cat", "dog"]\n')

    modules, errors = imported_by(*arguments)

    assert "Error" not in errors
    assert modules & (HEAVY | UNUSED) == set()


def test_a_server_starts_without_what_only_learners_and_reports_need():
    code = "import attakit.cli.serve, json, sys; print(json.dumps(sorted(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert set(json.loads(told.stdout)) & ((HEAVY - {"torch"}) | {"river", "alembic"}) == set()


def test_help_imports_no_command():
    modules, _ = imported_by("--help")

    commands = {f"attakit.cli.{name}" for name in ("run", "show", "token", "serve", "validate")}
    assert modules & commands == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_a_command_what_the_command_says_of_itself(name):
    own = get_command(load_command(name)).help or COMMANDS[name].help

    assert own.splitlines()[0] == COMMANDS[name].help


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_own_help_and_is_listed(name):
    command = CliRunner().invoke(app, [name, "-h"], prog_name="attakit", env={"COLUMNS": "120"})
    program = CliRunner().invoke(app, ["-h"], env={"COLUMNS": "120"})

    assert command.exit_code == 0
    assert f"Usage: attakit {name} " in command.stdout
    assert COMMANDS[name].help in command.stdout
    assert "completion" not in command.stdout
    assert COMMANDS[name].help in program.stdout


def test_the_garbage_collector_works_again_after_an_import():
    load_command("token")

    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_an_unknown_command_names_the_nearest():
    told = CliRunner().invoke(app, ["rnu"])

    assert told.exit_code == 2
    assert "Did you mean 'run'?" in told.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_that_it_understands(name):
    program, command, *arguments = COMMANDS[name].example.split()
    parser = get_command(load_command(name))

    assert (program, command) == ("attakit", name)
    context = parser.make_context(name, list(arguments))
    if isinstance(parser, TyperGroup):
        called, subcommand, rest = parser.resolve_command(context, arguments)
        subcommand.make_context(called, rest, parent=context)


def test_the_example_stands_at_the_end_of_the_help():
    shown = CliRunner().invoke(app, ["table", "--help"]).output

    assert shown.rstrip().endswith(f"Example: {COMMANDS['table'].example}")


def test_help_groups_commands_by_purpose():
    shown = CliRunner().invoke(app, ["--help"]).output

    places = [shown.index(command.purpose) for command in COMMANDS.values()]
    assert places == sorted(places)


def test_the_shell_completes_commands():
    found = CliRunner().invoke(
        app,
        env={"_ATTAKIT_COMPLETE": "complete_bash", "COMP_WORDS": "attakit be", "COMP_CWORD": "1"},
        prog_name="attakit",
    )

    assert found.output.split() == ["bench"]
