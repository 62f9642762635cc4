"""Client: requests to a service, sent again when the connection breaks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from attakit.client.records import (
    Accuracy,
    Alarm,
    Guess,
    Labels,
    Lease,
    Prediction,
    Sample,
    Status,
    Version,
)
from attakit.errors import MissingExtra, ServiceError

try:
    import httpx2
except ImportError as error:
    raise MissingExtra(
        "Client: httpx2 is not installed. Install it with: pip install 'attakit[client]'."
    ) from error

Picture = str | Path | bytes | Image.Image | NDArray[Any]
Record = TypeVar("Record")

_PAUSES = (0.2, 1.0, 3.0)  # seconds before the second, third and last attempt


class Client:
    """A service at an address.

    What may be sent twice without harm is sent again when the connection breaks; answers carry a
    key, so that one of them counts.

    Parameters
    ----------
    url
        Of the service, such as "http://localhost:8000".
    token
        Made with `attakit token`; not needed for an open service on this machine.
    annotator
        Who answers questions, on an open service; elsewhere the token says it.
    timeout
        Seconds to wait for an answer.
    pauses
        Seconds between attempts; one attempt more than there are pauses.
    transport
        How requests travel, for tests.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        annotator: str | None = None,
        timeout: float = 30.0,
        pauses: Sequence[float] = _PAUSES,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if annotator is not None:
            headers["X-Annotator"] = quote(annotator)
        self._http = httpx2.Client(
            base_url=url, headers=headers, timeout=timeout, transport=transport
        )
        self._url = url
        self._pauses = pauses

    def predict(self, inputs: Picture | Sequence[Picture]) -> tuple[Prediction, ...]:
        """Ask about one or many inputs.

        Images are paths, bytes of files, PIL images or arrays of bytes (height, width[, 3]).
        Arrays of other numbers are sent as they are, for models that take arrays.
        """
        many = [inputs] if isinstance(inputs, _ONE) else list(inputs)
        if any(_is_numbers(one) for one in many):
            arrays = [np.asarray(one).tolist() for one in many]
            body = self._send("POST", "/v1/predict", json={"arrays": arrays}, again=False)
        else:
            files = [("files", ("image", _as_file(one))) for one in many]
            body = self._send("POST", "/v1/predict", files=files, again=False)
        return tuple(_make(Prediction, one) for one in body["predictions"])

    def sample(self, sample: str) -> Sample:
        """What became of a sample."""
        return _make(Sample, self._send("GET", f"/v1/samples/{sample}"))

    def picture(self, sample: str) -> bytes:
        """The picture of a sample, as a PNG file."""
        return self._reach("GET", f"/v1/samples/{sample}/image").content

    def forget(self, sample: str) -> None:
        """Have a sample, its answers and the anchor made of it removed."""
        self._send("DELETE", f"/v1/samples/{sample}")

    def classes(self) -> tuple[str, ...]:
        """Names of the classes, by label."""
        return tuple(self._send("GET", "/v1/classes")["classes"])

    def lease(self) -> Lease | None:
        """A question to answer; None if there is none now."""
        response = self._reach("POST", "/v1/questions/lease")
        return None if response.status_code == 204 else _lease(response.json())

    def answer(
        self,
        question: int,
        label: int | None = None,
        *,
        kind: str = "label",
        key: str | None = None,
    ) -> str:
        """Answer a question; returns "accepted", "repeated", "late" or "conflict".

        `kind` is "label", "skip", or "none" for none of the classes. The same `key` counts once.
        """
        body = {"key": key or uuid.uuid4().hex, "kind": kind, "label": label}
        outcome: str = self._send("POST", f"/v1/questions/{question}/answer", json=body)["outcome"]
        return outcome

    def undo(self, key: str | None = None) -> Lease:
        """Take back your last answer; the question is yours again."""
        body = {"key": key or uuid.uuid4().hex}
        return _lease(self._send("POST", "/v1/questions/undo", json=body))

    def release(self, question: int) -> None:
        """Give a question back."""
        self._send("POST", f"/v1/questions/{question}/release")

    def status(self) -> Status:
        """How the service is doing."""
        body = self._send("GET", "/v1/status")
        accuracy = body["accuracy"]
        parts = {
            "labels": _make(Labels, body["labels"]),
            "accuracy": None if accuracy is None else _make(Accuracy, accuracy),
            "alarms": tuple(_make(Alarm, one) for one in body["alarms"]),
        }
        return _make(Status, {**body, **parts})

    def versions(self) -> tuple[Version, ...]:
        """All versions, newest first."""
        body = self._send("GET", "/v1/versions")["versions"]
        empty = {"passed": None, "reason": None}
        return tuple(
            _make(Version, {**one, **(one["gate"] or empty), "at": one["at"]}) for one in body
        )

    def promote(self, version: int) -> None:
        """Let a version answer from now on."""
        self._send("POST", f"/v1/versions/{version}/promote")

    def pause(self) -> None:
        """Let the learner rest; predictions go on."""
        self._send("POST", "/v1/learning", json={"paused": True})

    def resume(self) -> None:
        """Let the learner go on."""
        self._send("POST", "/v1/learning", json={"paused": False})

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _send(self, method: str, path: str, *, again: bool = True, **content: Any) -> Any:
        return self._reach(method, path, again=again, **content).json()

    def _reach(
        self, method: str, path: str, *, again: bool = True, **content: Any
    ) -> httpx2.Response:
        """Send a request until it arrives; one that must not arrive twice only until it left."""
        for pause in (*self._pauses, None):
            try:
                response = self._http.request(method, path, **content)
            except httpx2.TransportError as error:
                never_left = isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout))
                if pause is None or not (again or never_left):
                    raise ServiceError(
                        f"Client: {self._url} cannot be reached "
                        f"({type(error).__name__}: {error}). Check the address, and whether the "
                        f"service runs."
                    ) from error
                time.sleep(pause)
            else:
                return _checked(response)
        raise AssertionError("unreachable")


_ONE = (str, Path, bytes, Image.Image, np.ndarray)


def _checked(response: httpx2.Response) -> httpx2.Response:
    if response.is_success:
        return response
    try:
        told = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        told = f"it answered {response.status_code} {response.reason_phrase}; is it attakit?"
    raise ServiceError(f"Client: {told}", response.status_code)


def _make(record: Callable[..., Record], body: Mapping[str, Any]) -> Record:
    """A record from what was sent; what a newer service says besides is left out."""
    known = {field.name for field in fields(record)}  # type: ignore[arg-type]
    named = {("class_name" if name == "class" else name): body[name] for name in body}
    return record(**{name: value for name, value in named.items() if name in known})


def _lease(body: Mapping[str, Any]) -> Lease:
    return _make(Lease, {**body, "guesses": tuple(_make(Guess, one) for one in body["guesses"])})


def _is_numbers(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype != np.uint8


def _as_file(picture: Picture) -> bytes:
    if isinstance(picture, bytes):
        return picture
    if isinstance(picture, (str, Path)):
        return Path(picture).read_bytes()
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
