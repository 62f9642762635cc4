"""`attakit serve`, up to the moment at which it would answer requests."""

import json
import os
import re
import socket
import sys

import pytest
import torch

from attakit.cli import main
from attakit.nn import SmallCNN, save_weights
from attakit.service import serve as serving
from attakit.service.lock import exclusive_lock
from attakit.service.saved_settings import SETTINGS_FILE
from attakit.service.storage import open_storage

SERVICE = """
folder = "live"
classes = ["cat", "dog", "cow"]
[model]
name = "small_cnn"
weights = "source.safetensors"
[input]
size = 28
channels = 1
[server]
port = 0
"""


class ServedSample(Exception):
    """Requests would be answered now."""


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder with a service file whose server never answers and whose learner never starts."""

    def answer(_server, sockets):
        raise ServedSample

    monkeypatch.setattr(serving._Server, "run", answer)
    monkeypatch.setattr(serving.Supervisor, "start", lambda _self: None)
    monkeypatch.setattr(serving.Supervisor, "stop", lambda _self: None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "service.toml").write_text(SERVICE)
    model = SmallCNN(classes=3)
    save_weights(model, "source.safetensors")
    save_weights(SmallCNN(classes=4), "other.safetensors")
    torch.save(model, "pickled.pt")
    (tmp_path / "broken.toml").write_text("classes = [")
    return tmp_path


@pytest.fixture
def serve(work, monkeypatch, capsys):
    """Runs the command, and returns its exit code and what it said on the error stream."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["attakit", "serve", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code, capsys.readouterr().err

    return run


@pytest.fixture
def begun(work, monkeypatch):
    """A service that was started before; what it keeps as its settings."""
    monkeypatch.setattr(sys, "argv", ["attakit", "serve", "service.toml"])
    with pytest.raises(ServedSample):
        main()
    return (work / "live" / SETTINGS_FILE).read_text()


MISTAKES = {
    "nothing": ([], "give either a service file or --demo"),
    "both": (["service.toml", "--demo"], "give either a service file or --demo"),
    "no file": (["nowhere.toml"], "no service file at nowhere.toml"),
    "no TOML": (["broken.toml"], "broken.toml is not valid TOML"),
    "a folder": (["."], ". cannot be read as a service file"),
    "unknown": (["service.toml", "--set", "labels.bugdet=3"], "Did you mean 'budget'"),
    "no value": (["service.toml", "--set", "labels"], "--set takes table.name=value"),
    "no weights": (["service.toml", "--set", "model.weights=gone.pt"], "no file gone.pt"),
    "pickle": (["service.toml", "--set", "model.weights=pickled.pt"], "holds more than tensors"),
    "classes": (["service.toml", "--set", "model.weights=other.safetensors"], "of other shapes"),
    "twice": (["service.toml", "--set", 'classes=["a","a","b"]'], "all different"),
    "model": (["service.toml", "--set", "model.name=small_cn"], "Did you mean 'small_cnn'"),
    "import": (["service.toml", "--set", "model.name=nowhere:x"], "cannot be imported"),
    "method": (["service.toml", "--set", "method.name=simata"], "Did you mean 'simatta'"),
    "array": (["service.toml", "--set", "input.kind=array"], "needs the shape"),
    "webhook": (["service.toml", "--set", "labels.webhook=x"], "an http or https address"),
    "database": (["service.toml", "--set", "database=mysql://x/y"], "SQLite or PostgreSQL"),
    "place": (["service.toml", "--folder", "broken.toml"], "broken.toml cannot be created"),
    "apart": (
        ["service.toml", "--folder", "broken.toml", "--set", "database=sqlite:///apart.sqlite"],
        "broken.toml cannot be created",
    ),
    "reordered": (
        ["service.toml", "--set", "classes=['dog', 'cat', 'cow']"],
        "classes: the service in live has the classes",
    ),
    "open": (
        ["service.toml", "--open", "--host", "0.0.0.0"],
        "server.open: 0.0.0.0 can be reached from other machines",
    ),
    "source": (["service.toml", "--set", "model.weights=again.safetensors"], "Use the same"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_in_one_line_and_changes_nothing(begun, serve, work, name):
    save_weights(SmallCNN(classes=3).requires_grad_(False), "again.safetensors")
    arguments, told = MISTAKES[name]

    code, said = serve(*arguments)

    assert code == 2
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
    assert told in said
    assert (work / "live" / SETTINGS_FILE).read_text() == begun


@pytest.mark.parametrize("setting", ["labelling.examples=gone", "gate.known=gone"])
def test_a_first_start_that_is_refused_makes_no_folder(work, serve, setting):
    code, said = serve("service.toml", "--folder", "new", "--set", setting)

    assert (code, "there is no folder gone" in said) == (2, True)
    assert not (work / "new").exists()


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such modes")
def test_the_log_warns_once_of_a_folder_that_others_may_enter(work, monkeypatch, capsys):
    (work / "live").mkdir()
    (work / "live").chmod(0o755)
    monkeypatch.setattr(sys, "argv", ["attakit", "serve", "service.toml"])

    with pytest.raises(ServedSample):
        main()

    lines = [line for line in capsys.readouterr().err.splitlines() if "chmod 700 live" in line]
    assert len(lines) == 1
    assert "mode 755" in lines[0]
    assert (work / "live").stat().st_mode & 0o777 == 0o755


def test_the_log_does_not_warn_of_a_folder_that_the_service_made(work, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["attakit", "serve", "service.toml"])

    with pytest.raises(ServedSample):
        main()

    assert "chmod" not in capsys.readouterr().err


@pytest.fixture
def started(work, monkeypatch, capsys):
    """Starts a service as far as its greeting, and returns what it prints."""

    def answer(server, sockets):
        server._on_started()
        raise ServedSample

    monkeypatch.setattr(serving._Server, "run", answer)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["attakit", "serve", "service.toml", *arguments])
        with pytest.raises(ServedSample):
            main()
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("quiet", [[], ["--quiet"], ["--host", "0.0.0.0"]])
def test_a_first_start_prints_an_address_to_log_in_with(started, work, quiet):
    printed = " ".join(started(*quiet).split())

    token = re.search(r"/login#token=(atk_[\w-]+)", printed).group(1)
    with open_storage(work / "live") as storage:
        assert storage.tokens.check(token) == ("admin", "admin")


def test_only_the_first_start_makes_a_token(started):
    started()

    assert "token=" not in started()


def test_an_open_service_makes_no_token(started, work):
    assert "token=" not in started("--open")
    with open_storage(work / "live") as storage:
        assert storage.tokens.all() == ()


def test_a_port_that_is_taken_is_told(begun, serve):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])

        code, said = serve("service.toml", "--port", port)

    assert code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in said
    assert "--port 0 takes any free port" in said


def test_a_first_start_that_fails_makes_no_token_that_nobody_has_seen(serve, started):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        serve("service.toml", "--port", str(other.getsockname()[1]))

    assert "token=" in started()


def test_a_second_server_for_one_folder_is_refused(begun, serve, work):
    with exclusive_lock(work / "live" / serving.LOCK_FILE):
        code, said = serve("service.toml", "--set", "labels.budget=7")

    assert code == 2
    assert "The server: another server is using live. Stop it" in said
    assert (work / "live" / SETTINGS_FILE).read_text() == begun


@pytest.mark.parametrize("command", [["serve", "--no-learner"], ["learn"]])
def test_servers_and_learners_apart_are_refused_on_sqlite(work, monkeypatch, capsys, command):
    monkeypatch.setattr(sys, "argv", ["attakit", *command, "service.toml"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{' '.join(command)}: servers and learners share their records through Post" in said
    assert not (work / "live").exists()


def test_what_was_given_is_kept(begun, monkeypatch, work):
    line = ["attakit", "serve", "service.toml", "--set", "labels.budget=7"]
    monkeypatch.setattr(sys, "argv", line)

    with pytest.raises(ServedSample):
        main()

    kept = json.loads((work / "live" / SETTINGS_FILE).read_text())
    assert kept["labels"]["budget"] == 7
