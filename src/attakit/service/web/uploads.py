"""Read the inputs of a request: files, base64 images, arrays or texts."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from attakit.service.storage.tables import is_text
from attakit.service.texts import LONGEST
from attakit.service.web.about import NAME as ABOUT
from attakit.service.web.about import (
    About,
    check_count,
    describe_about,
    describe_about_field,
    read_about,
    read_about_field,
)
from attakit.service.web.errors import refuse
from attakit.service.web.long_json import TooManyElements, count_elements, read_json
from attakit.settings.service import InputTable

_FORMS = (
    "Send multipart 'files', or JSON with 'images' (base64), 'arrays' (nested numbers) or 'texts'."
)
_KINDS = ("images", "arrays", "texts")
_NAMES = "'images', 'arrays' or 'texts'"

_SHORT = 100_000  # bytes; longer JSON is read in another thread
_READING = CapacityLimiter(2)  # more threads would keep the event loop from running
_OTHERS = 100  # values other than the numbers of an input

# A single grey pixel, as a PNG file.
_EXAMPLE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True, slots=True)
class Upload:
    """The inputs of a request: bytes of files, nested lists or texts; and their descriptions."""

    files: Sequence[bytes] = ()
    arrays: Sequence[object] = ()
    texts: Sequence[str] = ()
    about: tuple[About, ...] = ()


class _InMemory(MultiPartParser):
    spool_max_size = 0  # never to disk: the size of a request is limited already


async def read_upload(request: Request, most: int, numbers: int) -> Upload:
    """Read the inputs of a request: at most `most` of them, each with `numbers` numbers."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        upload = await _read_files(request, most)
    elif kind == "application/json":
        upload = await _read_body(await request.body(), most, numbers)
    else:
        raise refuse(415, f"The content type {kind[:100]!r} is not supported. {_FORMS}")
    count = len(upload.files) + len(upload.arrays) + len(upload.texts)
    if count == 0:
        raise refuse(422, f"The request holds no inputs. {_FORMS}")
    if count > most:
        raise _too_many(most)
    check_count(upload.about, count)
    return upload


def describe_upload(table: InputTable, most: int) -> dict[str, Any]:
    """Return the request body of /v1/predict for the OpenAPI description."""
    if table.kind == "image":
        file = {"type": "string", "format": "binary"}
        files = _listed(file, most, "Image files, each as a part of this name")
        image = {"type": "string", "format": "byte", "minLength": 4, "example": _EXAMPLE}
        images = _listed(image, most, "Image files, encoded as base64")
        content = {
            "multipart/form-data": {"schema": _only("files", files, describe_about_field())},
            "application/json": {"schema": _only("images", images, describe_about(most))},
        }
        return {"required": True, "content": content}
    if table.kind == "text":
        text = {"type": "string", "maxLength": LONGEST}
        texts = _only("texts", _listed(text, most, "Texts"), describe_about(most))
        return {"required": True, "content": {"application/json": {"schema": texts}}}
    array: dict[str, Any] = {"type": "number", "minimum": -1e30, "maximum": 1e30}
    for length in reversed(table.shape):
        array = {"type": "array", "items": array, "minItems": length, "maxItems": length}
    shape = " × ".join(str(length) for length in table.shape)
    arrays = _listed(array, most, f"Numbers of shape {shape}, nested")
    schema = _only("arrays", arrays, describe_about(most))
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def example_input(table: InputTable) -> str:
    """Return the arguments with which curl sends one input to /v1/predict.

    >>> print(example_input(InputTable(kind="array", shape=(2,))))
    --json '{"arrays": [[0, 0]]}'
    """
    if table.kind == "image":
        return '-F "files=@image.png"'
    inputs = {"texts": ["A text"]} if table.kind == "text" else {"arrays": [_zeros(table.shape)]}
    return f"--json '{json.dumps(inputs)}'"


def _zeros(shape: Sequence[int]) -> Any:
    return 0 if not shape else [_zeros(shape[1:])] * shape[0]


def _listed(items: dict[str, Any], most: int, text: str) -> dict[str, Any]:
    described = {"description": f"{text}; {most} at most"}
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most, **described}


def _only(name: str, schema: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: schema, ABOUT: about},
        "required": [name],
        "additionalProperties": False,
    }


async def _read_files(request: Request, most: int) -> Upload:
    parser = _InMemory(request.headers, request.stream(), max_files=most, max_fields=1)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        if error.message.startswith("Too many files"):
            raise _too_many(most) from error
        raise refuse(
            400, f"The form cannot be read: {error.message.rstrip('.')}. {_FORMS}"
        ) from error
    except (KeyError, ValueError) as error:  # a header without boundary, or garbage
        raise refuse(400, f"The form cannot be read. {_FORMS}") from error
    parts = form.multi_items()
    try:
        files = [
            await part.read()
            for name, part in parts
            if name == "files" and isinstance(part, UploadFile)
        ]
    finally:
        await form.close()
    about = [part for name, part in parts if name == ABOUT and isinstance(part, str)]
    if len(files) + len(about) != len(parts):
        raise refuse(422, f"The form holds something other than 'files' and '{ABOUT}'. {_FORMS}")
    return Upload(files=files, about=read_about_field(about[0]) if about else ())


async def _read_body(body: bytes, most: int, numbers: int) -> Upload:
    # Counted first, because reading takes far longer. An array has at most as many lists as
    # numbers.
    if count_elements(body) > most * (2 * numbers + _OTHERS):
        raise _too_many(most)
    if len(body) <= _SHORT:
        return _read_json(body, most)
    return await to_thread.run_sync(_read_json, body, most, limiter=_READING)


def _read_json(body: bytes, most: int) -> Upload:
    try:
        content = read_json(body, most)
    except TooManyElements as error:
        raise _too_many(most) from error
    except (ValueError, RecursionError) as error:
        raise refuse(400, "The request is not valid JSON. Check its syntax.") from error
    if not isinstance(content, dict) or len(content.keys() - {ABOUT}) != 1:
        raise refuse(422, f"The JSON may only have {_NAMES} and '{ABOUT}'. {_FORMS}")
    about = read_about(content.pop(ABOUT)) if ABOUT in content else ()
    ((name, values),) = content.items()
    if name not in _KINDS or not isinstance(values, list):
        raise refuse(422, f"The JSON must hold a list named {_NAMES}. {_FORMS}")
    if name == "images":
        return Upload(files=[_from_base64(value) for value in values], about=about)
    if name == "texts":
        return Upload(texts=[_checked_text(value) for value in values], about=about)
    return Upload(arrays=values, about=about)


def _checked_text(value: object) -> str:
    if not isinstance(value, str) or not is_text(value):
        raise refuse(422, "A text must be a string without the zero character. Check 'texts'.")
    return value


def _from_base64(value: object) -> bytes:
    try:
        if not isinstance(value, str):
            raise TypeError
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (TypeError, UnicodeEncodeError, binascii.Error) as error:
        raise refuse(422, "An image is not base64 text. Encode the bytes of its file.") from error


def _too_many(most: int) -> Exception:
    return refuse(413, f"The request holds more than {most} inputs. Split it.")
