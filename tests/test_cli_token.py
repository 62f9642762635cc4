import json

import pytest
from typer.testing import CliRunner

from attakit.cli import app
from attakit.errors import MissingExtra, SettingError, StateError, UnknownName
from attakit.service.saved_settings import save_settings
from attakit.service.storage import open_storage
from attakit.settings.service import ServiceSettings
from needed import hide_package


@pytest.fixture
def call(tmp_path):
    """Runs `attakit token` on the service of this test."""

    def run(*arguments):
        line = ["token", arguments[0], "--folder", str(tmp_path), *arguments[1:]]
        result = CliRunner().invoke(app, line)
        if isinstance(result.exception, Exception):
            raise result.exception
        return result

    return run


def test_a_token_is_shown_once_and_alone_on_standard_output(call, tmp_path):
    told = call("create", "Ada", "--role", "label")

    with open_storage(tmp_path) as storage:
        assert storage.tokens.check(told.stdout.strip()) == ("Ada", "label")
    assert "cannot be shown again" in told.stderr
    assert told.stdout.strip() not in call("list").stdout


def test_it_is_told_which_service_a_token_is_for(call, tmp_path):
    assert f"for the service in {tmp_path}." in call("create", "Ada", "--role", "label").stderr


def test_only_creating_a_token_makes_a_service(call, tmp_path):
    for line in (["list"], ["revoke", "Ada"]):
        with pytest.raises(SettingError, match=r"no service in .* --folder"):
            call(*line)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["", "not/there/yet"])
def test_the_first_token_says_which_new_place_it_made(call, tmp_path, place):
    folder = tmp_path / place

    first = call("create", "Ada", "--role", "admin", "--folder", str(folder)).stderr
    second = call("create", "Bob", "--role", "label", "--folder", str(folder)).stderr

    assert f"A new, empty one was created in {folder}." in first
    assert "new, empty" not in second
    assert (folder / "service.sqlite").is_file()


def test_the_new_place_is_told_beside_json_too(call, tmp_path):
    told = call("create", "Ada", "--role", "admin", "--json")

    assert json.loads(told.stdout)["name"] == "Ada"
    assert "A new, empty one was created" in told.stderr


def test_a_folder_of_something_else_gets_no_token(call, tmp_path):
    (tmp_path / "notes.txt").write_text("")

    with pytest.raises(SettingError, match=r"no service in .* --folder .* empty or does not"):
        call("create", "Ada", "--role", "admin")

    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_token_goes_to_the_database_that_the_service_uses(call, tmp_path):
    url = f"sqlite:///{tmp_path / 'other.sqlite'}"
    folder = tmp_path / "live"
    save_settings(ServiceSettings(folder=folder, classes=("cat", "dog"), database=url))

    token = call("create", "Ada", "--role", "label", "--folder", str(folder)).stdout.strip()

    with open_storage(folder, url) as storage:
        assert storage.tokens.check(token) == ("Ada", "label")
    assert not (folder / "service.sqlite").exists()


def test_kept_settings_that_cannot_be_read_are_told(call, tmp_path):
    (tmp_path / "settings.json").write_text("[]")

    with pytest.raises(StateError, match=r"settings.json cannot be read .* Start the service"):
        call("create", "Ada", "--role", "label")


def test_a_database_whose_password_is_not_kept_must_be_named(call, tmp_path):
    url = "postgresql://ada:secret@nowhere/labels"
    save_settings(ServiceSettings(folder=tmp_path, classes=("cat", "dog"), database=url))

    with pytest.raises(SettingError, match="Give the whole URL with --database"):
        call("create", "Ada", "--role", "label")

    assert not (tmp_path / "service.sqlite").exists()


def test_a_service_without_tokens_says_how_to_make_one(call, tmp_path):
    open_storage(tmp_path).close()

    assert f"--role label --folder {tmp_path}" in call("list").stdout.replace("\n", "")


def test_a_folder_that_cannot_be_made_is_told(call, tmp_path):
    (tmp_path / "file").write_text("")

    for place in (tmp_path / "file", tmp_path / "file" / "live"):
        with pytest.raises(SettingError, match=r"cannot be created \(.*\)\. Choose another one"):
            call("create", "Ada", "--role", "label", "--folder", str(place))


def test_tokens_are_listed_with_their_roles(call):
    call("create", "Ada", "--role", "label")
    call("create", "root", "--role", "admin")
    call("revoke", "root")

    ada, root = json.loads(call("list", "--json").stdout)["tokens"]

    assert (ada["name"], ada["role"], ada["revoked"]) == ("Ada", "label", None)
    assert root["revoked"] >= root["created"] > 0
    shown = call("list").stdout
    assert "Ada" in shown
    assert "admin" in shown


def test_a_revoked_token_counts_no_more(call, tmp_path):
    token = json.loads(call("create", "Ada", "--role", "label", "--json").stdout)["token"]

    assert "is revoked" in call("revoke", "Ada").stdout
    with open_storage(tmp_path) as storage:
        assert storage.tokens.check(token) is None


def test_mistakes_are_told(call):
    call("create", "Ada", "--role", "label")

    with pytest.raises(SettingError, match="was used before"):
        call("create", "Ada", "--role", "admin")
    with pytest.raises(UnknownName, match="Did you mean 'Ada'"):
        call("revoke", "Eda")
    assert call("create", "Bob", "--role", "boss").exit_code == 2


def test_the_database_can_be_another_one(call, tmp_path):
    url = f"sqlite:///{tmp_path / 'other.sqlite'}"
    call("create", "Ada", "--role", "label", "--database", url)

    assert not (tmp_path / "service.sqlite").exists()
    assert "Ada" in call("list", "--database", url).stdout


def test_without_the_service_it_says_what_to_install(call, monkeypatch):
    hide_package(monkeypatch, "sqlalchemy", ("attakit.cli.token", "attakit.service"))

    with pytest.raises(
        MissingExtra, match=r"attakit token needs .* sqlalchemy.*attakit\[service\]"
    ):
        call("list")
