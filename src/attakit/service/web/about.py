"""What callers say about their inputs: their own id, a text, and notes by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attakit.service.storage.tables import is_text
from attakit.service.web.errors import refuse

NAME = "about"
LONGEST_ID = 200
LONGEST_TEXT = 20_000
MOST_NOTES = 50
LONGEST_NOTE = 2_000
_KEYS = {"id", "text", "notes"}
_FORM = f'Send "{NAME}": [{{"id": "…", "text": "…", "notes": {{"name": "value"}}}}, …].'


@dataclass(frozen=True, slots=True)
class About:
    """A caller's description of one input."""

    caller_id: str | None = None
    text: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


def describe_about_field() -> dict[str, Any]:
    """Return the field `about` of a form, for the OpenAPI description."""
    text = f"What you know about each file, as JSON. {_FORM}"
    return {"type": "string", "description": text, "example": '[{"id": "order 17"}]'}


def describe_about(most: int) -> dict[str, Any]:
    """Return the part `about` of a JSON request, for the OpenAPI description."""
    texts = {"type": "string", "maxLength": LONGEST_NOTE}
    one = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "maxLength": LONGEST_ID, "description": "Your own id"},
            "text": {"type": "string", "maxLength": LONGEST_TEXT, "description": "Shown to people"},
            "notes": {"type": "object", "maxProperties": MOST_NOTES, "additionalProperties": texts},
        },
        "additionalProperties": False,
    }
    text = "What you know about each input, in the order of the inputs; people see it"
    example = {"example": [{"id": "order 17", "notes": {"machine": "B"}}]}
    return {"type": "array", "items": one, "maxItems": most, "description": text, **example}


def read_about_field(text: str) -> tuple[About, ...]:
    """Read the field `about` of a form, which holds JSON."""
    try:
        return read_about(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise refuse(422, f"'{NAME}' is not valid JSON. {_FORM}") from error


def read_about(given: object) -> tuple[About, ...]:
    """Read the descriptions of a request's inputs, one entry for each.

    >>> read_about([{"id": "order 17", "notes": {"machine": "B", "hours": 12}}])
    (About(caller_id='order 17', text=None, notes={'machine': 'B', 'hours': '12'}),)
    """
    if not isinstance(given, list):
        raise refuse(422, f"'{NAME}' must be a list with one entry per input. {_FORM}")
    return tuple(_read_one(one) for one in given)


def check_count(about: tuple[About, ...], inputs: int) -> None:
    """Refuse a request with more or fewer descriptions than inputs."""
    if about and len(about) != inputs:
        raise refuse(
            422, f"'{NAME}' has {len(about)} entries for {inputs} inputs. Give one for each."
        )


def _read_one(given: object) -> About:
    if given is None:
        return About()
    if not isinstance(given, dict) or not given.keys() <= _KEYS:
        raise refuse(422, f"An entry of '{NAME}' may only have an id, a text and notes.")
    return About(
        caller_id=_read_text(given.get("id"), "id", LONGEST_ID),
        text=_read_text(given.get("text"), "text", LONGEST_TEXT),
        notes=_read_notes(given.get("notes")),
    )


def _read_notes(given: object) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or len(given) > MOST_NOTES:
        raise refuse(422, f"Notes are at most {MOST_NOTES} names with values. {_FORM}")
    notes = {}
    for name, value in given.items():
        read = _read_text(value, "note", LONGEST_NOTE)
        _read_text(name, "name of a note", LONGEST_ID)
        if read is not None:
            notes[name] = read
    return notes


def _read_text(given: object, what: str, longest: int) -> str | None:
    if given is None:
        return None
    if isinstance(given, (int, float)):
        given = json.dumps(given)
    if not isinstance(given, str) or len(given) > longest or not is_text(given):
        raise refuse(
            422,
            f"The {what} in '{NAME}' must be text of at most {longest:,} characters, without the "
            f"zero character.",
        )
    return given
