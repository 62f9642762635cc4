"""Structured logs: one JSON object per line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

# uvicorn adds color_message for terminals.
_PLAIN = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
# These log the whole address of each request, which may contain a password or a token.
_LOG_ADDRESSES = {"httpx", "httpx2", "httpcore", "httpcore2"}

_ENCODE = json.JSONEncoder(default=str, ensure_ascii=False).encode

LARGEST = 10_000_000  # bytes of a file
OLDER = 4  # number of older files


class JsonFormatter(logging.Formatter):
    """A formatter that writes a record and its `extra` values as JSON.

    Examples
    --------
    >>> record = logging.makeLogRecord({"name": "a", "levelname": "INFO", "msg": "hello", "n": 2})
    >>> record.created = 0
    >>> JsonFormatter().format(record)
    '{"at": "1970-01-01T00:00:00+00:00", "level": "info", "from": "a", "what": "hello", "n": 2}'
    """

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "from": record.name,
            "what": record.getMessage(),
        }
        extra = {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            extra["trace"] = self.formatException(record.exc_info)
        return _ENCODE({**line, **extra})


@contextmanager
def logging_to(path: Path | None) -> Iterator[None]:
    """Append logs as JSON lines to a file inside the block; None is standard error.

    A file that reaches `LARGEST` bytes is renamed, and the oldest renamed file is deleted. So only
    one process may write to it.
    """
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    writer = _open(path)
    root.handlers[:] = [writer]
    root.setLevel(logging.INFO)
    # The service logs requests itself, with the route and the caller.
    logging.getLogger("uvicorn.access").disabled = True
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)  # the root logger decides
    try:
        yield
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        writer.close()


def _open(path: Path | None) -> logging.Handler:
    writer: logging.Handler = logging.StreamHandler()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = RotatingFileHandler(path, maxBytes=LARGEST, backupCount=OLDER, encoding="utf-8")
    writer.setFormatter(JsonFormatter())
    writer.addFilter(_is_wanted)
    return writer


def _is_wanted(record: logging.LogRecord) -> bool:
    library = record.name.partition(".")[0]
    return record.levelno >= logging.WARNING or library not in _LOG_ADDRESSES
