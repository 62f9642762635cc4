"""Turn uploads into encoded answers. Requests that come together share all of the work."""

from __future__ import annotations

import json
import uuid
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor

from attakit.errors import StateError, StreamError
from attakit.nn import softmax_entropy
from attakit.service.predictor import ServedPrediction
from attakit.service.storage.rows import ServedSample
from attakit.service.web.errors import refuse
from attakit.service.web.state import AppState
from attakit.service.web.uploads import Upload

_ENCODE = json.JSONEncoder(allow_nan=False).encode
_TOO_LARGE = (
    "The model gives no finite numbers for an input because its values are too large. Scale the "
    "inputs like the training data of the model."
)


@dataclass(frozen=True, slots=True)
class _Decoded:
    upload: Upload
    inputs: list[Tensor]
    contents: list[bytes]


def answer_together(service: AppState, uploads: Sequence[Upload]) -> list[bytes | Exception]:
    """Answer requests in one forward pass; an error of one of them is an error of that one only."""
    decoded = [_try_decode(service, upload) for upload in uploads]
    good = [one for one in decoded if isinstance(one, _Decoded)]
    answers = iter(_answer(service, good) if good else ())
    return [next(answers) if isinstance(one, _Decoded) else one for one in decoded]


def _try_decode(service: AppState, upload: Upload) -> _Decoded | Exception:
    try:
        return _Decoded(upload, *_decode(service, upload))
    except Exception as error:
        return error


def _decode(service: AppState, upload: Upload) -> tuple[list[Tensor], list[bytes]]:
    if upload.texts:
        return service.inputs.read_texts(upload.texts), [one.encode() for one in upload.texts]
    if upload.arrays:
        arrays = [service.inputs.read_array(numbers) for numbers in upload.arrays]
        return arrays, [service.inputs.encode(array) for array in arrays]
    return service.inputs.read_images(upload.files), list(upload.files)


def _answer(service: AppState, requests: Sequence[_Decoded]) -> Sequence[bytes | Exception]:
    inputs = [one for request in requests for one in request.inputs]
    try:
        answered = service.predictor.predict(service.inputs.stack(inputs))
        probabilities = answered.logits.softmax(dim=1)
        if not torch.isfinite(probabilities).all():
            raise StreamError(_TOO_LARGE)
    except Exception as error:
        if len(requests) > 1:  # it may be due to one request: answer each alone
            return [answer for one in requests for answer in _answer(service, [one])]
        is_away = isinstance(error, StateError)  # no model yet, or none any more
        return [refuse(503, str(error), retry_after=1) if is_away else error]
    served = _describe(service, answered, probabilities, requests)
    asked = _keep(service, served)
    rows = zip(served, probabilities.tolist(), strict=True)
    parts = [list(islice(rows, len(request.inputs))) for request in requests]
    return [_encode(service.settings.classes, part, asked) for part in parts]


def _describe(
    service: AppState,
    answered: ServedPrediction,
    probabilities: Tensor,
    requests: Sequence[_Decoded],
) -> list[ServedSample]:
    """Describe what is stored of each input, in order."""
    confidences, guesses = probabilities.max(dim=1)
    rows = zip(
        [content for request in requests for content in request.contents],
        guesses.tolist(),
        confidences.tolist(),
        softmax_entropy(answered.logits).tolist(),
        strict=True,
    )
    now = service.clock()
    samples = iter(
        ServedSample(uuid.uuid4().hex, content, answered.version, guess, confidence, entropy, now)
        for content, guess, confidence, entropy in rows
    )
    return [
        one
        for request in requests
        for one in _with_about(list(islice(samples, len(request.inputs))), request.upload)
    ]


def _with_about(served: list[ServedSample], upload: Upload) -> list[ServedSample]:
    """Add the sender's descriptions to samples; a text input is shown as it is."""
    if upload.texts:
        texts = zip(served, upload.texts, strict=True)
        served = [replace(one, text=text) for one, text in texts]
    if not upload.about:
        return served
    return [
        replace(one, caller_id=said.caller_id, text=one.text or said.text, notes=said.notes or None)
        for one, said in zip(served, upload.about, strict=True)
    ]


def _keep(service: AppState, served: Sequence[ServedSample]) -> set[str]:
    """Store what is drawn, and return the samples that people may be asked about."""
    kept = [one for one in served if is_drawn(one.sample, service.settings.learning.keep)]
    may_ask = service.overview.may_keep() and service.writer.put(kept)
    may_ask = may_ask and service.overview.may_ask()
    service.metrics.count_inputs(len(served))
    service.overview.count_served(len(served))
    return {one.sample for one in kept} if may_ask else set()


def is_drawn(sample: str, share: float) -> bool:
    """True if a sample belongs to the stored share. Its random name decides.

    >>> is_drawn("7fffffff00", 0.5), is_drawn("8000000000", 0.5), is_drawn("ffffffff00", 1.0)
    (True, False, True)
    """
    return int(sample[:8], 16) < share * 2**32


def _encode(
    classes: Sequence[str],
    rows: Sequence[tuple[ServedSample, Sequence[float]]],
    asked: Container[str],
) -> bytes:
    """Encode a `Predictions` body. Validating it would take longer than predicting."""
    predictions = [
        {
            "sample": one.sample,
            "class": classes[one.guess],
            "label": one.guess,
            "probabilities": dict(zip(classes, row, strict=True)),
            "entropy": max(0.0, one.entropy),
            "version": one.version,
            "asked": "undecided" if one.sample in asked else "no",
            **({} if one.caller_id is None else {"id": one.caller_id}),
        }
        for one, row in rows
    ]
    return _ENCODE({"predictions": predictions}).encode()
