"""/v1/versions/{number}/against/{other}: two versions on the same audit."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from fastapi import APIRouter

from attakit.client.dashboard_bodies import ClassComparison, ComparisonBody, Share
from attakit.errors import AttaError
from attakit.service.blobs import open_blobs
from attakit.service.learner.audit import Audit, AuditSample
from attakit.service.learner.sequences import Estimate, estimate, paired_counts, paired_difference
from attakit.service.models import VERSIONS, version_model
from attakit.service.storage.rows import Version
from attakit.service.web.errors import documented, refuse
from attakit.service.web.requests import VersionNumber
from attakit.service.web.security import Labelling
from attakit.service.web.state import AppState, Service

router = APIRouter(tags=["versions"])

_BUSY_SECONDS = 2
_running = Lock()  # a comparison loads two models, so there is only one at a time


@router.get(
    "/v1/versions/{number}/against/{other}",
    responses=documented(404, 409),
    summary="Compare two versions",
)
def compare(
    number: VersionNumber, other: VersionNumber, service: Service, _caller: Labelling
) -> ComparisonBody:
    """Let two versions predict the same audit samples, and compare both with people's answers.

    The samples are the newest of the audit whose content is still stored. The versions never
    learned from them.
    """
    if not _running.acquire(blocking=False):
        raise refuse(
            503, "Another comparison is running. Try again soon.", retry_after=_BUSY_SECONDS
        )
    try:
        return _compare(service, [_find(service, one) for one in (number, other)])
    finally:
        _running.release()


def _find(service: AppState, number: int) -> Version:
    known = service.storage.versions.get([number])
    if number not in known:
        raise refuse(404, f"There is no version {number}. See /v1/versions for the list.")
    return known[number]


def _compare(service: AppState, versions: Sequence[Version]) -> ComparisonBody:
    gate = service.settings.gate
    audit = Audit(service.storage, service.inputs.decode, gate.audit_window)
    samples = audit.samples()
    if not samples:
        raise refuse(409, "There is no audit answer yet. Answer some questions first.")
    new, old = (_predict(service, audit, one, samples) for one in versions)
    labels = [one.label for one in samples]
    counts = paired_counts(labels, new, old)
    return ComparisonBody(
        count=len(samples),
        one=_share(_right(labels, new), gate.confidence),
        other=_share(_right(labels, old), gate.confidence),
        difference=_body(paired_difference(labels, new, old, gate.confidence)),
        only_one=round(counts[1]),
        only_other=round(counts[-1]),
        classes=[
            _class(label, name, labels, new, old)
            for label, name in enumerate(service.settings.classes)
            if label in labels
        ],
    )


def _predict(
    service: AppState, audit: Audit, version: Version, samples: Sequence[AuditSample]
) -> list[int]:
    blobs = open_blobs(service.settings, service.storage, VERSIONS)
    try:
        model = version_model(service.settings, blobs, version)
    except (AttaError, OSError) as error:
        reason = f"Version {version.number} cannot be loaded: its weights are gone or damaged."
        raise refuse(409, f"{reason} Choose another one.") from error
    return audit.evaluate(version.number, model, samples)[0]


def _class(
    label: int, name: str, labels: Sequence[int | None], new: Sequence[int], old: Sequence[int]
) -> ClassComparison:
    places = [place for place, one in enumerate(labels) if one == label]
    return ClassComparison(
        class_name=name,
        label=label,
        count=len(places),
        one=sum(new[place] == label for place in places),
        other=sum(old[place] == label for place in places),
    )


def _right(labels: Sequence[int | None], guesses: Sequence[int]) -> list[bool]:
    return [label == guess for label, guess in zip(labels, guesses, strict=True)]


def _share(right: Sequence[bool], confidence: float) -> Share:
    return _body(estimate(sum(right), len(right), confidence))


def _body(found: Estimate) -> Share:
    return Share(value=found.value, low=found.low, high=found.high)
