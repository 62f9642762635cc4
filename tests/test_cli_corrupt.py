"""`attakit corrupt`, as users call it."""

import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from attakit.cli import app
from attakit.errors import SettingError
from attakit.processes.interrupt import Interrupted
from attakit.stream.corrupted_set import WrittenCounts


@pytest.fixture
def clean(tmp_path):
    for domain in ("photo", "sketch"):
        for kind in ("cat", "dog"):
            folder = tmp_path / "clean" / domain / kind
            folder.mkdir(parents=True)
            Image.new("RGB", (32, 32), "teal").save(folder / "1.png")
    return tmp_path / "clean"


@pytest.fixture
def call(clean, tmp_path):
    def corrupt(*options):
        arguments = ["corrupt", str(clean), str(tmp_path / "out"), *options]
        return CliRunner().invoke(app, arguments, catch_exceptions=False)

    return corrupt


def folders(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.glob("*/*"))


def test_it_says_what_it_wrote_and_what_was_there(call, tmp_path):
    call("--corruptions", "contrast", "--quiet")

    told = call("--corruptions", "contrast, pixelate", "--severities", "5,2")

    assert f"Wrote 12 images into {tmp_path / 'out'}, 4 existed already." in told.stdout
    assert folders(tmp_path / "out") == ["contrast/2", "contrast/5", "pixelate/2", "pixelate/5"]


def test_domains_size_and_format_are_obeyed(call, tmp_path):
    told = call(
        *("--corruptions", "contrast", "--domains", "sketch", "--size", "48"),
        *("--format", "jpg", "--quality", "80", "--seed", "2", "--json"),
    )

    assert json.loads(told.stdout) == {"folder": str(tmp_path / "out"), "written": 2, "kept": 0}
    with Image.open(tmp_path / "out/contrast/5/cat/sketch/1.jpg") as image:
        assert image.size == (48, 48)


def test_quiet_says_nothing(call):
    assert call("--corruptions", "contrast", "--quiet").output == ""


def test_all_are_the_fifteen_corruptions(call, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "attakit.cli.corrupt.write_corrupted",
        lambda *_, corruptions, **__: asked.extend(corruptions) or WrittenCounts(0, 0),
    )

    call()

    assert len(asked) == 15


def test_severities_that_are_no_numbers_are_refused(call):
    with pytest.raises(SettingError, match="whole numbers from 1 to 5, got 'five'"):
        call("--severities", "five")


def test_stopping_says_how_to_go_on(call, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("attakit.cli.corrupt.write_corrupted", stop)

    with pytest.raises(Interrupted, match="Run the same command to continue"):
        call()
