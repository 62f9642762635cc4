"""/v1/versions: saved models, and which one is served. And /v1/learning."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from fastapi import APIRouter
from starlette.responses import Response

from attakit.client.bodies import DoneBody
from attakit.client.dashboard_bodies import LearningBody, VersionBody, Versions
from attakit.errors import StateError
from attakit.nn.export import export_model
from attakit.service.blobs import open_blobs
from attakit.service.exportable import stored_model
from attakit.service.learner.candidates import SOURCE
from attakit.service.models import VERSIONS
from attakit.service.storage.rows import Version, field_values
from attakit.service.web.errors import documented, refuse
from attakit.service.web.requests import LearningRequest, VersionNumber
from attakit.service.web.security import Administrating, Labelling
from attakit.service.web.state import AppState, Service

router = APIRouter(tags=["versions"])

_LISTED = 1000
_FILE = "application/octet-stream"


@router.get("/v1/versions", responses=documented(), summary="Versions, newest first")
def versions(service: Service, _caller: Labelling) -> Versions:
    """Return each version's gate result, and which version is served.

    The list has the newest thousand, and all that were ever served.
    """
    current = service.storage.versions.current()
    promoted = {one.version for one in service.storage.versions.promotions(_LISTED)}
    newest = {one.number: one for one in service.storage.versions.recent(_LISTED)}
    known = newest | service.storage.versions.get(promoted - newest.keys())
    kept = _kept_files(service)
    bodies = [
        VersionBody.model_validate(
            {
                **field_values(one),
                "kept": _is_kept(one, kept),
                "promoted": one.number in promoted,
                "current": current is not None and one.number == current.version,
            }
        )
        for one in known.values()
    ]
    return Versions(versions=sorted(bodies, key=lambda one: one.version, reverse=True))


@router.post(
    "/v1/versions/{number}/promote", responses=documented(404, 409), summary="Serve a version"
)
def promote(number: VersionNumber, service: Service, caller: Administrating) -> DoneBody:
    """Roll back (or forward) to any version whose weights are stored."""
    known = service.storage.versions.get([number])
    if number not in known:
        raise refuse(404, "No version has this number. See /v1/versions for the list.")
    if not _is_kept(known[number], _kept_files(service)):
        raise refuse(409, "The weights of this version are no longer stored. Choose a newer one.")
    service.storage.versions.promote(number, f"Chosen by {caller.name}.", caller.name)
    service.overview.changed()
    return DoneBody()


@router.get(
    "/v1/versions/{number}/weights",
    response_class=Response,
    responses={
        200: {"content": {_FILE: {"schema": {"type": "string", "format": "binary"}}}},
        **documented(404, 409),
    },
    summary="Download a version",
)
def download(number: VersionNumber, service: Service, _caller: Administrating) -> Response:
    """Download all weights of a version as a safetensors file, with classes and inputs.

    `attakit export` writes other formats."""
    known = service.storage.versions.get([number])
    if number not in known:
        raise refuse(404, "No version has this number. See /v1/versions for the list.")
    try:
        model, facts = stored_model(service.settings, service.storage, known[number])
    except StateError as error:
        raise refuse(409, str(error)) from error
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        export_model(model, path, facts)
        content = path.read_bytes()
    name = f"attachment; filename=version-{number}.safetensors"
    return Response(content, media_type=_FILE, headers={"Content-Disposition": name})


@router.post("/v1/learning", responses=documented(), summary="Pause or resume learning")
def learning(body: LearningRequest, service: Service, caller: Administrating) -> LearningBody:
    """While learning is paused, predictions continue, no question is asked, and the model stays."""
    service.storage.key_values.set("paused", body.paused)
    service.storage.events.add("paused" if body.paused else "resumed", caller.name)
    service.overview.changed()
    return LearningBody(paused=body.paused)


def _kept_files(service: AppState) -> set[str]:
    return {*open_blobs(service.settings, service.storage, VERSIONS).names()}


def _is_kept(version: Version, files: set[str]) -> bool:
    return version.number == SOURCE or version.file in files
