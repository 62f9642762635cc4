"""/v1/samples: state of a sample; its picture; forgetting it. And /v1/classes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from attakit.client.bodies import AskedState, Classes, DoneBody, SampleBody
from attakit.service.storage.rows import ServedSample, field_values
from attakit.service.web.errors import documented, refuse
from attakit.service.web.requests import SampleName
from attakit.service.web.security import Administrating, Known, Labelling
from attakit.service.web.state import AppState, Service

router = APIRouter(tags=["samples"])

_ASKED: dict[str, AskedState] = {
    "undecided": "undecided",
    "asked": "yes",
    "not asked": "no",
    "forgotten": "forgotten",
}


@router.get("/v1/samples/{sample}", responses=documented(404), summary="State of a sample")
def read_sample(sample: SampleName, service: Service, _caller: Known) -> SampleBody:
    """Return the prediction, and whether people are asked about it."""
    served = find_sample(service, sample)
    state = service.storage.samples.state(sample) or "undecided"
    forgotten = state == "forgotten"
    values = field_values(served, *(("confidence", "entropy") if forgotten else ()))
    return SampleBody.model_validate(
        {
            "confidence": None,
            "entropy": None,
            **values,
            "class": None if forgotten else service.settings.classes[served.guess],
            "asked": _ASKED[state],
            "id": served.caller_id,
            "notes": served.notes or {},
        }
    )


@router.get(
    "/v1/samples/{sample}/image",
    response_class=Response,
    responses={
        200: {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}},
        **documented(404),
    },
    summary="The picture of a sample",
)
def show(sample: SampleName, service: Service, _caller: Labelling) -> Response:
    """Return a PNG file, made from the pixels that were sent."""
    content = find_sample(service, sample).content
    picture = service.inputs.picture(content) if content else None
    if picture is None:
        raise refuse(404, "This sample has no picture, or it is no longer stored.")
    return Response(picture, media_type="image/png")


@router.delete(
    "/v1/samples/{sample}",
    responses={
        202: {
            "model": DoneBody,
            "description": "Done, except for the learner's part, because it is not running",
        },
        **documented(404),
    },
    summary="Forget a sample",
)
def forget(
    sample: SampleName, service: Service, caller: Administrating, response: Response
) -> DoneBody:
    """Delete its content, its answers and its anchor. The log records that it was done.

    What models learned from it stays in their weights. If the learner is not running, it removes
    the anchor at its next start, and the response is 202.
    """
    if not service.writer.flush():
        raise refuse(503, "Samples are still being written. Try again.", retry_after=1)
    done = service.storage.samples.forget(sample, caller.name)
    if not done and service.storage.samples.state(sample) != "forgotten":
        raise _unknown()
    if not service.overview.learner_runs() and sample in service.storage.samples.to_forget():
        response.status_code = 202
    return DoneBody()


@router.get("/v1/classes", responses=documented(), summary="Names of the classes, by number")
async def classes(service: Service, _caller: Known) -> Classes:
    """Return the classes that the model knows."""
    return Classes(classes=list(service.settings.classes))


def find_sample(service: AppState, sample: str) -> ServedSample:
    """Return a sample that is stored, or is about to be; 404 if it is unknown."""
    served = service.writer.find(sample) or service.storage.samples.get(sample)
    if served is None:
        raise _unknown()
    return served


def _unknown() -> Exception:
    return refuse(404, "No sample has this name, or it is no longer stored. Check the name.")
