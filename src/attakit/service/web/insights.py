"""/v1/audit, /v1/people and /v1/events: accuracy by class, annotators, and events."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Query

from attakit.client.dashboard_bodies import (
    AuditBody,
    ClassAccuracy,
    ConfusionCell,
    EventBody,
    Events,
    People,
    PersonBody,
)
from attakit.service.storage.rows import Event, field_values
from attakit.service.web.errors import documented
from attakit.service.web.security import Labelling
from attakit.service.web.state import AppState, Service

router = APIRouter(prefix="/v1", tags=["operation"])

_ANSWERS = 5000  # newest votes that the list of people is based on
_QUIET = ("question", "answer", "undo", "settled", "version")  # there are thousands of these


@router.get("/audit", responses=documented(), summary="Accuracy by class")
def audit(service: Service, _caller: Labelling) -> AuditBody:
    """Compare predictions with people's answers on the newest audit samples.

    The result is by class and as a confusion matrix. The source model is judged on the same
    samples.
    """
    return audit_body(service)


@router.get("/people", responses=documented(), summary="Who answers")
def people(service: Service, _caller: Labelling) -> People:
    """Count each person's answers among the newest 5,000, and how often they agree with others."""
    found = service.storage.questions.people(_ANSWERS)
    return People(people=[PersonBody(**field_values(one)) for one in found])


@router.get("/events", responses=documented(), summary="What happened")
def events(
    service: Service,
    _caller: Labelling,
    limit: Annotated[int, Query(ge=1, le=500, description="How many at most")] = 50,
) -> Events:
    """Return promotions, gate results, alarms, pauses, tokens and removals, newest first."""
    found = service.storage.events.recent(limit, without=_QUIET)
    return Events(events=[_event(one) for one in found])


def audit_body(service: AppState) -> AuditBody:
    """Return the audit of a service, as shown on the dashboard."""
    window = service.settings.gate.audit_window
    questions = service.storage.questions.audited(window)
    guesses = service.storage.samples.guesses([one.sample for one in questions])
    known = [one for one in questions if guesses.get(one.sample, -1) >= 0]
    cells = Counter((one.label, guesses[one.sample]) for one in known)
    source = Counter(one.label for one in known if one.label == one.source_guess)
    totals = Counter(one.label for one in known)
    by_class = [
        ClassAccuracy(
            class_name=name,
            label=label,
            count=totals[label],
            right=cells[label, label],
            source_right=source[label],
        )
        for label, name in enumerate(service.settings.classes)
    ]
    return AuditBody(
        count=len(known),
        window=window,
        classes=by_class,
        cells=[
            ConfusionCell(label=label, guess=guess, count=count)
            for (label, guess), count in sorted(cells.items(), key=lambda one: str(one[0]))
        ],
        source_known=all(one.source_guess is not None for one in known),
    )


def _event(event: Event) -> EventBody:
    return EventBody(at=event.at, kind=event.kind, who=event.who, text=_sentence(event))


def _sentence(event: Event) -> str:
    """Describe an event in one sentence."""
    details = event.details
    texts: dict[str, Any] = {
        "promotion": f"Version {details.get('version')} answers. {details.get('reason', '')}",
        "gate": f"Version {details.get('version')}: {details.get('reason', '')}",
        "alarm": details.get("text", details.get("what", "")),
        "change": details.get("text", details.get("what", "")),
        "paused": "Learning was paused.",
        "resumed": "Learning was resumed.",
        "forgotten": f"Sample {details.get('sample')} was forgotten.",
        "token": f"{details.get('name')} got a token with the role {details.get('role')}.",
        "token revoked": f"The token of {details.get('name')} was revoked.",
        "learner died": f"The learner ended with code {details.get('code')} and was restarted.",
    }
    known = texts.get(event.kind)
    return str(known).strip() if known else ", ".join(f"{k}: {v}" for k, v in details.items())
