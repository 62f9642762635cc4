"""/v1/guide: labelling instructions, and example images of each class."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as PathPart
from starlette.responses import Response

from attakit.client.bodies import ClassGuide, GuideBody
from attakit.service.web.errors import documented, refuse
from attakit.service.web.security import Labelling
from attakit.service.web.state import Service

router = APIRouter(prefix="/v1/guide", tags=["questions"])

_CACHED = {"Cache-Control": "private, max-age=3600"}

Place = Annotated[int, PathPart(ge=0, le=2**31 - 1)]


@router.get("", responses=documented(), summary="How to label")
def read_guide(service: Service, _caller: Labelling) -> GuideBody:
    """Return the instructions from the settings, and the addresses of example images by class."""
    classes, counts = service.settings.classes, service.examples.counts
    return GuideBody(
        instructions=service.settings.labelling.instructions.strip(),
        classes=[
            ClassGuide(
                class_name=name,
                about=service.settings.labelling.about.get(name, ""),
                examples=[f"/v1/guide/{label}/{place}" for place in range(count)],
            )
            for label, (name, count) in enumerate(zip(classes, counts, strict=True))
        ],
    )


@router.get(
    "/{label}/{place}",
    response_class=Response,
    responses={
        200: {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}},
        **documented(404),
    },
    summary="An example image",
)
def show_example(label: Place, place: Place, service: Service, _caller: Labelling) -> Response:
    """Return an example of a class as a PNG file."""
    picture = service.examples.picture(label, place, service.settings.server.pixels)
    if picture is None:
        raise refuse(404, "There is no such example, or it cannot be read. See /v1/guide.")
    return Response(picture, media_type="image/png", headers=_CACHED)
