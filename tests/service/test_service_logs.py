"""Logs as JSON lines."""

import json
import logging

import pytest

from attakit.service import logs
from attakit.service.logs import logging_to


@pytest.fixture
def log_file(untouched_logging, tmp_path):
    """A log file that is written during the test."""
    with logging_to(tmp_path / "service.log"):
        yield tmp_path / "service.log"


def read(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_each_line_is_an_object_with_what_was_given(log_file):
    logging.getLogger("attakit.x").info("asked", extra={"count": 3, "who": "Änne\n"})
    logging.getLogger("attakit.x").debug("not logged")

    (line,) = read(log_file)
    assert (line["what"], line["count"], line["who"]) == ("asked", 3, "Änne\n")
    assert (line["level"], line["from"]) == ("info", "attakit.x")


def test_a_level_that_uvicorn_had_before_does_not_count(untouched_logging, tmp_path):
    logger = logging.getLogger("uvicorn.error")
    logger.setLevel(logging.ERROR)
    with logging_to(tmp_path / "service.log"):
        logger.info("Started")

    assert [line["what"] for line in read(tmp_path / "service.log")] == ["Started"]


def test_colours_for_a_terminal_are_left_out(log_file):
    logging.getLogger("uvicorn.error").info("Started", extra={"color_message": "\033[1mStarted"})

    assert "color_message" not in read(log_file)[0]


@pytest.mark.parametrize("library", ["httpx", "httpx2", "httpcore.connection", "httpcore2.http11"])
def test_addresses_that_libraries_log_are_left_out(log_file, library):
    logging.getLogger(library).info("HTTP Request: POST http://user:secret@hook.example/")
    logging.getLogger(library).warning("something is wrong")

    assert [line["what"] for line in read(log_file)] == ["something is wrong"]


def test_an_error_is_logged_with_its_trace(log_file):
    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("attakit.x").exception("failed")

    assert "ValueError: odd" in read(log_file)[0]["trace"]


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
