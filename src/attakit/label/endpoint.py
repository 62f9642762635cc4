"""Endpoint: a model behind HTTP, as a function for `ModelOracle`."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attakit.errors import ServiceError, SettingError, check_range
from attakit.label.said import Said
from attakit.queries import SampleId

# Statuses that may change a moment later. All others mean a bad request.
_WORTH_ANOTHER_TRY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT}


class Endpoint:
    """Posts samples as JSON and reads an answer for each.

    The request is ``{"samples": [{"name": …}, …], "classes": [… or null]}``. With `send_files` each
    sample also has ``"content"``, its file in base64. The response is ``{"answers": [… one for each
    sample …]}``. An answer is a class name or index, a list with a number per class, an object from
    class names to numbers, or null to abstain.

    No connection, a timeout, or status 408, 429 or 5xx raises `OSError`, and `ModelOracle` tries
    again. Anything else raises `ServiceError`.

    Parameters
    ----------
    url
        Where to post; http or https.
    classes
        Names of the classes, sent with each request.
    where
        Function from a sample's name to what the model finds it by, such as its path.
    send_files
        Send the content of the file that `where` names.
    token
        Bearer token to send, if given.
    timeout
        Seconds to wait for a response.

    Examples
    --------
    >>> Endpoint("ftp://models/label")
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: Endpoint: url must begin with http:// or https://, got
    'ftp://models/label'.
    """

    def __init__(
        self,
        url: str,
        *,
        classes: Sequence[str] | None = None,
        where: Callable[[SampleId], str] = str,
        send_files: bool = False,
        token: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise SettingError(f"Endpoint: url must begin with http:// or https://, got {url!r}.")
        check_range("Endpoint", "timeout", timeout, above=0)
        self.url = url
        self.classes = None if classes is None else list(classes)
        self.where = where
        self.send_files = send_files
        self.token = token
        self.timeout = timeout

    def __call__(self, samples: Sequence[SampleId]) -> Sequence[Said]:
        """Ask about some samples, in one request."""
        body = {"samples": [self._described(each) for each in samples], "classes": self.classes}
        headers = {"Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        content = json.dumps(body).encode()
        request = urllib.request.Request(self.url, content, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                return self._read(response.read())
        except urllib.error.HTTPError as error:
            error.close()  # it holds the connection
            if error.code in _WORTH_ANOTHER_TRY or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise OSError(f"{self.url} answered with status {error.code}.") from error
            raise ServiceError(
                f"Endpoint: {self.url} refused the request with status {error.code} "
                f"({error.reason}).",
                error.code,
            ) from error

    def _described(self, sample: SampleId) -> dict[str, str]:
        found = self.where(sample)
        if not self.send_files:
            return {"name": found}
        try:
            content = Path(found).read_bytes()
        except OSError as error:
            raise ServiceError(
                f"Endpoint: the file of sample {sample!r} cannot be sent: {error}. Turn off "
                "send_files, or use samples that are files."
            ) from error
        return {"name": found, "content": base64.b64encode(content).decode()}

    def _read(self, content: bytes) -> Sequence[Said]:
        try:
            answers: Any = json.loads(content)["answers"]
        except (ValueError, KeyError, TypeError) as error:
            raise ServiceError(
                f"Endpoint: {self.url} must answer with a JSON object that has a list "
                f'"answers", got {content[:100]!r}.'
            ) from error
        if not isinstance(answers, list):
            raise ServiceError(
                f'Endpoint: "answers" of {self.url} must be a list, got {answers!r}.'
            )
        return answers
