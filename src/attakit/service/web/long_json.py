"""Read large JSON objects without blocking the other threads of the process.

`json.loads` holds Python's global lock until it has read everything. Here the elements of lists are
read one by one, and other threads run in between.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_SCAN = json.JSONDecoder().raw_decode


class TooManyElements(Exception):
    """A list is longer than allowed."""


def count_elements(body: bytes) -> int:
    """Return an upper bound of the number of values in a JSON text, without reading them.

    >>> count_elements(b'{"arrays": [[1, 2], [3, 4]]}')
    7
    """
    return sum(map(body.count, (b",", b"[", b"{")))


def read_json(body: bytes, most: int) -> Any:
    """Return the content of a JSON text; raise `ValueError` or `RecursionError` if it is invalid.

    Raise `TooManyElements` if a list directly in the object has more than `most` elements.

    >>> read_json(b'{"arrays": [[1, 2], [3, 4]], "note": null}', most=2)
    {'arrays': [[1, 2], [3, 4]], 'note': None}
    """
    reader = _Reader(body.decode(json.detect_encoding(body), "surrogatepass"))
    content = reader.read_object(most) if reader.next() == "{" else reader.read_value()
    reader.expect("")
    return content


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def next(self) -> str:
        """Return the next character that is not space; "" at the end."""
        space = _SPACE.match(self._text, self._at)
        self._at = self._at if space is None else space.end()
        return self._text[self._at : self._at + 1]

    def expect(self, character: str) -> None:
        if self.next() != character:
            raise ValueError(f"{character!r} is missing at {self._at}")
        self._at += len(character)

    def read_value(self) -> Any:
        self.next()
        value, self._at = _SCAN(self._text, self._at)
        return value

    def read_object(self, most: int) -> dict[str, Any]:
        content: dict[str, Any] = {}
        self.expect("{")
        while self.next() != "}":
            if content:
                self.expect(",")
            self._read_member(content, most)
        self.expect("}")
        return content

    def _read_member(self, content: dict[str, Any], most: int) -> None:
        name = self.read_value()
        if not isinstance(name, str) or name in content:
            raise ValueError(f"{name!r} is not a name, or occurs twice")
        self.expect(":")
        content[name] = self._read_list(most) if self.next() == "[" else self.read_value()

    def _read_list(self, most: int) -> list[Any]:
        elements: list[Any] = []
        self.expect("[")
        while self.next() != "]":
            if len(elements) == most:
                raise TooManyElements
            if elements:
                self.expect(",")
            elements.append(self.read_value())
        self.expect("]")
        return elements
