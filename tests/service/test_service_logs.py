"""Logs as JSON lines."""

import io
import json
import logging

import pytest

from attakit.service import logs
from attakit.service.logs import log_as_json, logging_to


def test_each_line_is_an_object_with_what_was_given(untouched_logging):
    file = io.StringIO()
    log_as_json(logging.INFO, file)

    logging.getLogger("attakit.x").info("asked", extra={"count": 3, "who": "Änne\n"})
    logging.getLogger("attakit.x").debug("not told")

    (line,) = file.getvalue().splitlines()
    told = json.loads(line)
    assert (told["what"], told["count"], told["who"]) == ("asked", 3, "Änne\n")
    assert (told["level"], told["from"]) == ("info", "attakit.x")


def test_colours_for_a_terminal_are_left_out(untouched_logging):
    file = io.StringIO()
    log_as_json(file=file)

    logging.getLogger("uvicorn.error").info("Started", extra={"color_message": "\033[1mStarted"})

    assert "color_message" not in json.loads(file.getvalue())


@pytest.mark.parametrize("library", ["httpx", "httpx2", "httpcore.connection", "httpcore2.http11"])
def test_addresses_that_libraries_tell_are_left_out(untouched_logging, library):
    file = io.StringIO()
    log_as_json(logging.DEBUG, file)

    logging.getLogger(library).info("HTTP Request: POST http://user:secret@hook.example/")
    logging.getLogger(library).warning("something is wrong")

    assert [json.loads(line)["what"] for line in file.getvalue().splitlines()] == [
        "something is wrong"
    ]


def test_an_error_is_told_with_its_trace(untouched_logging):
    file = io.StringIO()
    log_as_json(file=file)

    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("attakit.x").exception("failed")

    assert "ValueError: odd" in json.loads(file.getvalue())["trace"]


def test_afterwards_logs_go_where_they_went_before(untouched_logging, tmp_path):
    root = logging.getLogger()
    before = (root.handlers[:], root.level)

    with logging_to(tmp_path / "live" / "service.log"):
        logging.getLogger("attakit.x").info("inside")
    logging.getLogger("attakit.x").info("outside")

    (line,) = (tmp_path / "live" / "service.log").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["what"] == "inside"
    assert (root.handlers[:], root.level) == before


def test_a_file_is_bounded_and_the_newest_lines_are_kept(untouched_logging, tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "LARGEST", 1_000)
    monkeypatch.setattr(logs, "OLDER", 2)

    with logging_to(tmp_path / "service.log"):
        for number in range(100):
            logging.getLogger("attakit.x").info("told", extra={"number": number})

    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["service.log", "service.log.1", "service.log.2"]
    assert all(file.stat().st_size <= 1_000 for file in files)
    lines = [line for file in files[::-1] for line in file.read_text().splitlines()]
    kept = [json.loads(line)["number"] for line in lines]
    assert kept == [*range(100 - len(kept), 100)]
