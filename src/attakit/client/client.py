"""Client for the service's HTTP API, with retries when the connection breaks."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import ValidationError

from attakit.client.bodies import (
    Classes,
    ContentBody,
    LeaseBody,
    OutcomeBody,
    OwnAnswerBody,
    OwnAnswers,
    PredictionBody,
    Predictions,
    ResponseBody,
    SampleBody,
)
from attakit.client.dashboard_bodies import ComparisonBody, StatusBody, VersionBody, Versions
from attakit.errors import MissingExtra, ServiceError
from attakit.queries import AnswerOutcome

try:
    import httpx2
except ImportError as error:
    raise MissingExtra(
        "Client: httpx2 is not installed. Install it with: pip install 'attakit[client]'."
    ) from error

Picture = str | Path | bytes | Image.Image | NDArray[Any] | list[Any]
AboutInput = Mapping[str, Any]  # `id`, `text` and `notes`, all optional
Body = TypeVar("Body", bound=ResponseBody)

_PAUSES = (0.2, 1.0, 3.0)  # seconds before the second, third and last attempt


class Client:
    """A client for the service at an address.

    Requests that are safe to repeat are sent again when the connection breaks. Answers carry a key,
    so that each counts once.

    Parameters
    ----------
    url
        Address of the service, such as "http://localhost:8000".
    token
        Access token, created with `attakit token`. Not needed for an open service on this machine.
    annotator
        Name of the person who answers, on an open service. Otherwise the token identifies them.
    timeout
        Seconds to wait for a response.
    pauses
        Seconds to wait before each retry.
    transport
        HTTP transport, for tests.
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

    def predict(
        self, inputs: Picture | Sequence[Picture], *, about: Sequence[AboutInput] | None = None
    ) -> tuple[PredictionBody, ...]:
        """Predict the class of one or many inputs.

        Images are paths, bytes of files, PIL images or arrays of bytes (height, width[, 3]).
        Arrays of other numbers, and lists of numbers, are sent as they are, for models that take
        arrays. One list is a list of inputs: for a single input, write `[[0.1, 2.0]]`.

        `about` has one entry per input, with your own `id`, a `text` and `notes`. Annotators see
        them, and exports contain them.
        """
        many = [inputs] if isinstance(inputs, _ONE) else list(inputs)
        if any(_is_numbers(one) for one in many):
            return self._predict(arrays=[np.asarray(one).tolist() for one in many], about=about)
        content: dict[str, Any] = {
            "files": [("files", ("image", _as_file(one))) for one in many],
            "data": {} if about is None else {"about": json.dumps(list(about))},
        }
        response = self._reach("POST", "/v1/predict", again=False, **content)
        return tuple(self._read(Predictions, response).predictions)

    def predict_texts(
        self, texts: Sequence[str], *, about: Sequence[AboutInput] | None = None
    ) -> tuple[PredictionBody, ...]:
        """Predict the class of texts, for models that take texts."""
        return self._predict(texts=list(texts), about=about)

    def sample(self, sample: str) -> SampleBody:
        """Return the state of a sample."""
        return self._send(SampleBody, "GET", f"/v1/samples/{sample}")

    def content(self, sample: str) -> ContentBody:
        """Return the numbers or the text of a sample, and the notes of its sender."""
        return self._send(ContentBody, "GET", f"/v1/samples/{sample}/content")

    def picture(self, sample: str) -> bytes:
        """Return the picture of a sample, as a PNG file."""
        return self._reach("GET", f"/v1/samples/{sample}/image").content

    def forget(self, sample: str) -> None:
        """Delete a sample, its answers and its anchor."""
        self._reach("DELETE", f"/v1/samples/{sample}")

    def classes(self) -> tuple[str, ...]:
        """Names of the classes, by label."""
        return tuple(self._send(Classes, "GET", "/v1/classes").classes)

    def lease(self) -> LeaseBody | None:
        """Lease a question to answer; None if there is none now."""
        response = self._reach("POST", "/v1/questions/lease")
        return None if response.status_code == 204 else self._read(LeaseBody, response)

    def answer(
        self,
        question: int,
        label: int | None = None,
        *,
        kind: str = "label",
        key: str | None = None,
        comment: str | None = None,
        flag: bool = False,
    ) -> AnswerOutcome:
        """Answer a question; returns "accepted", "repeated", "late" or "conflict".

        `kind` is "label", "skip", or "none" for none of the classes. A question that proposes a
        class also takes "yes" and "no". The same `key` counts once. The comment and the flag are
        for your team.
        """
        body: dict[str, Any] = {"key": key or uuid.uuid4().hex, "kind": kind, "label": label}
        body |= {"comment": comment, "flag": flag} if comment or flag else {}
        path = f"/v1/questions/{question}/answer"
        return self._send(OutcomeBody, "POST", path, json=body).outcome

    def answers(self, limit: int = 30) -> tuple[OwnAnswerBody, ...]:
        """Return your own answers, newest first."""
        path = f"/v1/questions/mine?limit={limit}"
        return tuple(self._send(OwnAnswers, "GET", path).answers)

    def undo(self, key: str | None = None, *, answer: str | None = None) -> LeaseBody:
        """Undo your last answer, or the one with the key `answer`, and lease its question again."""
        body = {"key": key or uuid.uuid4().hex, "answer": answer}
        return self._send(LeaseBody, "POST", "/v1/questions/undo", json=body)

    def release(self, question: int) -> None:
        """Give up the lease of a question."""
        self._reach("POST", f"/v1/questions/{question}/release")

    def status(self) -> StatusBody:
        """Return the state of the service."""
        return self._send(StatusBody, "GET", "/v1/status")

    def versions(self) -> tuple[VersionBody, ...]:
        """Return all versions, newest first."""
        return tuple(self._send(Versions, "GET", "/v1/versions").versions)

    def compare(self, one: int, other: int) -> ComparisonBody:
        """Compare two versions on the same audit samples."""
        return self._send(ComparisonBody, "GET", f"/v1/versions/{one}/against/{other}")

    def promote(self, version: int) -> None:
        """Serve this version from now on."""
        self._reach("POST", f"/v1/versions/{version}/promote")

    def pause(self) -> None:
        """Pause learning; predictions continue."""
        self._reach("POST", "/v1/learning", json={"paused": True})

    def resume(self) -> None:
        """Resume learning."""
        self._reach("POST", "/v1/learning", json={"paused": False})

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _predict(self, **body: Any) -> tuple[PredictionBody, ...]:
        given = {name: value for name, value in body.items() if value is not None}
        response = self._reach("POST", "/v1/predict", again=False, json=given)
        return tuple(self._read(Predictions, response).predictions)

    def _send(self, body: type[Body], method: str, path: str, **content: Any) -> Body:
        return self._read(body, self._reach(method, path, **content))

    def _read(self, body: type[Body], response: httpx2.Response) -> Body:
        try:
            return body.model_validate_json(response.content)
        except ValidationError as error:
            raise ServiceError(
                f"Client: {self._url} does not answer as this version of attakit expects "
                f"({error.errors()[0]['msg']}). Check the address, and install the same version of "
                "attakit as the service."
            ) from error

    def _reach(
        self, method: str, path: str, *, again: bool = True, **content: Any
    ) -> httpx2.Response:
        """Send a request with retries; if it must not arrive twice, only until it is sent."""
        for pause in (*self._pauses, None):
            try:
                response = self._http.request(method, path, **content)
            except httpx2.TransportError as error:
                never_left = isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout))
                if pause is None or not (again or never_left):
                    raise ServiceError(
                        f"Client: {self._url} cannot be reached ({type(error).__name__}: {error}). "
                        "Check the address, and that the service is running."
                    ) from error
                time.sleep(pause)
            else:
                return _checked(response)
        raise AssertionError("unreachable")


_SHOWN = 60  # characters of a path in a message
_ONE = (str, Path, bytes, Image.Image, np.ndarray)


def _checked(response: httpx2.Response) -> httpx2.Response:
    if response.is_success:
        return response
    try:
        message = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        message = f"it answered {response.status_code} {response.reason_phrase}; is it attakit?"
    raise ServiceError(f"Client: {message}", response.status_code)


def _is_numbers(value: object) -> bool:
    return isinstance(value, list) or (isinstance(value, np.ndarray) and value.dtype != np.uint8)


def _read_file(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ServiceError(
            f"Client: the file {str(path)[:_SHOWN]!r} cannot be read: {error.strerror}. Give the "
            "path of an image; texts for a model go to predict_texts()."
        ) from error


def _as_file(picture: Picture) -> bytes:
    if isinstance(picture, bytes):
        return picture
    if isinstance(picture, (str, Path)):
        return _read_file(picture)
    if not isinstance(picture, (Image.Image, np.ndarray)):
        raise ServiceError(
            f"Client: an input is a {type(picture).__name__}. Give a path, the bytes of a file, an "
            "image, an array or a list of numbers; for one input of numbers, [[0.1, 2.0]]."
        )
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
