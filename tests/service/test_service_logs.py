"""Logs as JSON lines."""

import io
import json
import logging

import pytest

from attakit.service.logs import log_as_json, logging_to


@pytest.fixture
def untouched_logging():
    root = logging.getLogger()
    names = ("uvicorn", "uvicorn.error", "uvicorn.access")
    saved = [(logging.getLogger(name), logging.getLogger(name).disabled) for name in names]
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    for logger, disabled in saved:
        logger.disabled = disabled


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
