"""Every command that a text shows exists and takes the options it is shown with."""

import argparse
import re
import runpy
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from attakit.cli.commands import load_command
from attakit.settings.load import load_experiment
from attakit.settings.suite import load_suite
from commands_in_texts import commands

ROOT = Path(__file__).parent.parent
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md")])
SHOWN = {each: None for text in TEXTS for each in commands(text.read_text(encoding="utf-8"))}
TOP_LEVEL = {"--help", "--version", "--install-completion", "--show-completion"}


def shown(program, *, whole=None):
    """Commands of a program, each once; only those that can be pasted, or only the others."""
    return [
        pytest.param(each, id=str(each))
        for each in SHOWN
        if each.words[0] == program and whole in (None, each.whole)
    ]


def command_of(words):
    """The command that the words call, and the words that are left for it."""
    command, rest = get_command(load_command(words[0])), list(words[1:])
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return command, rest


class Parsed(Exception):
    """The options of a script were understood."""


def test_there_are_commands_to_check():
    assert len(SHOWN) > 150
    assert "make demo" in map(str, SHOWN)


@pytest.mark.parametrize("command", shown("attakit", whole=True))
def test_a_command_that_can_be_pasted_is_understood(command):
    called, rest = command_of(command.words[1:])

    context = called.make_context(called.name, rest)  # raises if it does not understand

    assert not context.args


@pytest.mark.parametrize("command", shown("attakit", whole=False))
def test_a_command_in_a_sentence_exists_with_its_options(command):
    if command.words[1].startswith("-"):
        assert set(command.options) <= TOP_LEVEL
    elif command.words[1].islower():  # not `attakit COMMAND`
        called, _ = command_of(command.words[1:])
        known = {name for each in called.params for name in (*each.opts, *each.secondary_opts)}
        assert set(command.options) <= known | {"--help"}


@pytest.mark.parametrize("command", shown("attakit"))
def test_the_files_and_settings_of_a_command_are_valid(command):
    overrides = [
        value
        for name, value in zip(command.words, command.words[1:], strict=False)
        if name == "--set"
    ]
    for name in command.words:
        if name.startswith("experiments/") and "*" not in name:
            path = ROOT / name
            if "grid" in tomllib.loads(path.read_text(encoding="utf-8")):
                load_suite(path, overrides)
            else:
                load_experiment(path, overrides)


@pytest.mark.parametrize("command", shown("make"))
def test_a_target_exists(command):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert command.words[1] in targets


@pytest.mark.parametrize("command", shown("pip"))
def test_the_extras_that_are_installed_exist(command):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"(?:attakit|\.)\[([\w,]+)\]", str(command))

    assert {extra for extras in named for extra in extras.split(",")} <= set(
        project["optional-dependencies"]
    )


@pytest.mark.parametrize("command", shown("python"))
def test_a_script_understands_its_options(command, monkeypatch):
    script, *arguments = command.words[1:]
    if script == "-m":
        assert all((ROOT / each).exists() for each in arguments if each.startswith("tests/"))
        return
    text = (ROOT / script).read_text(encoding="utf-8")
    if "argparse" not in text:
        assert arguments == []
        return

    def parse(parser, given=None, namespace=None):
        _, unknown = parser.parse_known_args(arguments, namespace)
        assert unknown == []
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    monkeypatch.setattr("sys.argv", [script, *arguments])
    with pytest.raises(Parsed):
        runpy.run_path(str(ROOT / script), run_name="__main__")
