"""/v1/questions: lease a question, answer it, undo the answer, or release the question."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from attakit.client.bodies import (
    ContentBody,
    DoneBody,
    GuessBody,
    LeaseBody,
    OutcomeBody,
    OwnAnswerBody,
    OwnAnswers,
    QuestionBody,
    Questions,
)
from attakit.service.storage.asking import MOST_LEASES
from attakit.service.storage.rows import Lease, OwnAnswer, Question, field_values
from attakit.service.web.contents import content_of, words_of
from attakit.service.web.errors import documented, refuse
from attakit.service.web.requests import LeaseRequest, NewAnswer, QuestionNumber, UndoRequest
from attakit.service.web.security import Labelling
from attakit.service.web.state import AppState, Service

router = APIRouter(prefix="/v1/questions", tags=["questions"])

_NOTHING = (
    f"There is no question now, or you hold {MOST_LEASES} questions already, the maximum per person"
)


@router.get("", responses=documented(), summary="Recent questions")
def recent(
    service: Service,
    _caller: Labelling,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at most")] = 50,
) -> Questions:
    """Return the newest questions first, with their answers, and which of these count."""
    found = service.storage.questions.recent(limit)
    return Questions(questions=[_question(service, one) for one in found])


@router.get("/mine", responses=documented(), summary="Your own answers")
def mine(
    service: Service,
    caller: Labelling,
    limit: Annotated[int, Query(ge=1, le=200, description="How many at most")] = 30,
) -> OwnAnswers:
    """Return your newest answers first, with the key for undoing one that is not final."""
    found = service.storage.questions.given_by(caller.name, limit)
    return OwnAnswers(answers=[_own(service, one) for one in found])


@router.post(
    "/lease",
    response_model=LeaseBody,
    responses={204: {"description": _NOTHING}, **documented()},
    summary="Get a question to answer",
)
def lease(
    service: Service, caller: Labelling, body: LeaseRequest | None = None
) -> LeaseBody | Response:
    """Lease the oldest open question that is not leased to another person.

    You get the same question until it is answered or released, or until the lease expires. With
    `besides` you hold several.
    """
    besides = () if body is None else body.besides
    found = service.storage.questions.lease(caller.name, besides)
    return Response(status_code=204) if found is None else _lease(service, found)


@router.post("/undo", responses=documented(409), summary="Undo your last answer")
def undo(body: UndoRequest, service: Service, caller: Labelling) -> LeaseBody:
    """Undo an answer that is not final yet. Its question is leased to you again."""
    found = service.storage.questions.undo(caller.name, body.key, body.besides, answer=body.answer)
    if found is None:
        raise refuse(
            409, "You have no answer that can still be undone. Continue with the next question."
        )
    service.overview.changed()
    return _lease(service, found)


@router.post("/{question}/answer", responses=documented(404), summary="Answer a question")
def answer(
    question: QuestionNumber, body: NewAnswer, service: Service, caller: Labelling
) -> OutcomeBody:
    """Send the class, or yes or no if one is proposed. Posting the same key twice is harmless.

    The outcome is "repeated" for a key that was posted before, "late" if the question is closed,
    and "conflict" if another answer counts already.
    """
    outcome = service.storage.questions.answer(
        question,
        caller.name,
        body.kind,
        body.label,
        body.key,
        comment=body.comment,
        flagged=body.flag,
    )
    service.overview.changed()
    return OutcomeBody(outcome=outcome)


@router.post("/{question}/release", responses=documented(404), summary="Release a question")
def release(question: QuestionNumber, service: Service, caller: Labelling) -> DoneBody:
    """Release a question, so that another person can answer it."""
    service.storage.questions.release(question, caller.name)
    return DoneBody()


def _lease(service: AppState, found: Lease) -> LeaseBody:
    question = found.question
    return LeaseBody.model_validate(
        {
            **field_values(question),
            "image": _image(service, question.sample),
            "content": _content(service, question.sample),
            "guesses": _guesses(service, question),
            "until": found.until,
            "open": service.storage.questions.count_unanswered(),
            "answered_by_you": service.storage.questions.answered_by(found.annotator),
            "budget_left": service.overview.status().labels.left,
        }
    )


def _own(service: AppState, given: OwnAnswer) -> OwnAnswerBody:
    about = service.storage.samples.about(given.sample)
    return OwnAnswerBody.model_validate(
        {
            **field_values(given),
            "image": _image(service, given.sample),
            "text": words_of(service, given.sample) or (about and about.caller_id),
            "flagged": bool(given.flagged),
            "final": given.state != "open",
        }
    )


def _image(service: AppState, sample: str) -> str | None:
    is_image = service.settings.input.kind == "image"
    return f"/v1/samples/{sample}/image" if is_image else None


def _content(service: AppState, sample: str) -> ContentBody | None:
    """Return what to show of a sample, other than a picture."""
    served = service.storage.samples.get(sample)
    body = None if served is None else content_of(service, served)
    if body is None or (body.kind == "image" and not (body.id or body.text or body.notes)):
        return None
    return body


def _guesses(service: AppState, question: Question) -> list[GuessBody]:
    classes = service.settings.classes
    return [
        GuessBody(label=label, class_name=classes[label], probability=probability)
        for label, probability in question.guesses
    ]


def _question(service: AppState, question: Question) -> QuestionBody:
    about = service.storage.samples.about(question.sample)
    return QuestionBody.model_validate(
        {
            **field_values(question),
            "image": _image(service, question.sample),
            "id": None if about is None else about.caller_id,
            "text": words_of(service, question.sample),
            "proposed": None if question.state == "forgotten" else question.proposed,
            "guesses": _guesses(service, question),
            "answers": service.storage.questions.answers(question.question),
        }
    )
