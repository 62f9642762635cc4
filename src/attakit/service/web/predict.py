"""POST /v1/predict: answer inputs with the promoted model."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Container, Sequence
from dataclasses import replace

import torch
from anyio import to_thread
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from torch import Tensor

from attakit.client.bodies import Predictions
from attakit.errors import StateError, StreamError
from attakit.nn import softmax_entropy
from attakit.service.predictor import ServedPrediction
from attakit.service.storage.rows import ServedSample
from attakit.service.texts import LONGEST
from attakit.service.web.errors import documented, refuse
from attakit.service.web.security import Predicting
from attakit.service.web.state import AppState, Service
from attakit.service.web.uploads import Upload, read_upload

router = APIRouter(tags=["predictions"])

_QUEUE = 256  # requests that may wait; more get status 503


@router.post(
    "/v1/predict",
    responses={200: {"model": Predictions}, **documented(415)},
    summary="Predict one or many inputs",
)
async def predict(request: Request, service: Service, _caller: Predicting) -> Response:
    """Classify images, arrays or texts. The answer never waits for learning.

    Send image files as multipart `files`, or JSON with `images` (base64). For models that take
    them, send JSON with `arrays` (nested numbers) or `texts`. The list `about` may contain your own
    `id`, a `text` and `notes` for each input. Annotators see them. A sample may be labelled later.
    """
    if service.predicting.statistics().tasks_waiting > _QUEUE:
        raise refuse(503, "Too many requests are waiting. Try again in a moment.", retry_after=1)
    most = service.settings.server.inputs_per_request
    upload = await read_upload(request, most, _most_values(service))
    content = await to_thread.run_sync(_answer, service, upload, limiter=service.predicting)
    return Response(content, media_type="application/json")


def _most_values(service: AppState) -> int:
    """Return an upper bound of the values of one input; commas in a text look like values."""
    is_text = service.settings.input.kind == "text"
    return LONGEST if is_text else math.prod(service.inputs.shape)


def _answer(service: AppState, upload: Upload) -> bytes:
    inputs, contents = _decode(service, upload)
    try:
        answered = service.predictor.predict(service.inputs.stack(inputs))
    except StateError as error:  # no model yet, or no longer
        raise refuse(503, str(error), retry_after=1) from error
    served, probabilities = _judge(service, answered, contents, upload)
    kept = [one for one in served if is_drawn(one.sample, service.settings.learning.keep)]
    may_ask = service.overview.may_keep() and service.writer.put(kept)
    may_ask = may_ask and service.overview.may_ask()
    service.metrics.count_inputs(len(served))
    service.overview.count_served(len(served))
    asked = {one.sample for one in kept} if may_ask else set()
    return _encode_response(service.settings.classes, served, probabilities, asked=asked)


def is_drawn(sample: str, share: float) -> bool:
    """True if a sample belongs to the stored share. Its random name decides.

    >>> is_drawn("7fffffff00", 0.5), is_drawn("8000000000", 0.5), is_drawn("ffffffff00", 1.0)
    (True, False, True)
    """
    return int(sample[:8], 16) < share * 2**32


def _decode(service: AppState, upload: Upload) -> tuple[list[Tensor], list[bytes]]:
    if upload.texts:
        return service.inputs.read_texts(upload.texts), [one.encode() for one in upload.texts]
    if upload.arrays:
        arrays = [service.inputs.read_array(numbers) for numbers in upload.arrays]
        return arrays, [service.inputs.encode(array) for array in arrays]
    return service.inputs.read_images(upload.files), list(upload.files)


def _judge(
    service: AppState, answered: ServedPrediction, contents: Sequence[bytes], upload: Upload
) -> tuple[list[ServedSample], Tensor]:
    probabilities = answered.logits.softmax(dim=1)
    if not torch.isfinite(probabilities).all():
        raise StreamError(
            "The model gives no finite numbers for an input because its values are too large. "
            "Scale the inputs like the training data of the model."
        )
    confidences, guesses = probabilities.max(dim=1)
    rows = zip(
        contents,
        guesses.tolist(),
        confidences.tolist(),
        softmax_entropy(answered.logits).tolist(),
        strict=True,
    )
    now = service.clock()
    served = [
        ServedSample(uuid.uuid4().hex, content, answered.version, guess, confidence, entropy, now)
        for content, guess, confidence, entropy in rows
    ]
    return _with_about(served, upload), probabilities


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


def _encode_response(
    classes: Sequence[str],
    served: Sequence[ServedSample],
    probabilities: Tensor,
    *,
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
        for one, row in zip(served, probabilities.tolist(), strict=True)
    ]
    return json.dumps({"predictions": predictions}, allow_nan=False).encode()
