"""How a sample is forgotten: its row stays, so that the log makes sense, but nothing of it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, String, cast, literal, null, select

from attakit.service.storage.events import add_event
from attakit.service.storage.tables import answers, events, leases, questions, samples

# Numbers that are not null in any row; -1 is no class.
_NOTHING = {"content": None, "size": 0, "guess": -1, "confidence": 0.0, "entropy": 0.0}


def forget_sample(connection: Connection, sample: str, who: str, now: float) -> bool:
    """Remove content, guesses and labels, and close open questions; False if nothing is there.

    A question that was refunded stays so: a learner that replays its log must find the same budget.
    """
    known = samples.update().where(samples.c.sample == sample, samples.c.forgotten.is_(None))
    if not connection.execute(known.values(**_NOTHING, forgotten=now)).rowcount:
        return False
    about = select(questions.c.question).where(questions.c.sample == sample)
    connection.execute(leases.delete().where(leases.c.question.in_(about)))
    _unsay(connection, about)
    asked = questions.update().where(questions.c.sample == sample)
    connection.execute(asked.where(questions.c.settled.is_(None)).values(settled=now))
    paid, unfit = questions.c.state.in_(("open", "answered")), questions.c.state == "none"
    connection.execute(asked.where(paid).values(state="forgotten"))
    connection.execute(asked.where(unfit).values(state="skipped"))  # what was said is gone too
    connection.execute(asked.values(label=null(), guesses=[], wanted=0))
    add_event(connection, now, "forgotten", who, sample=sample)
    return True


def _unsay(connection: Connection, about: Select[Any]) -> None:
    """Remove what people said; "none of these" becomes a skip, which tells nothing of the sample.

    Keys go too: that of an imported answer is made from its label.
    """
    said = answers.update().where(answers.c.question.in_(about))
    key = literal("forgotten ") + cast(answers.c.answer, String)
    connection.execute(said.values(label=null(), key=key))
    connection.execute(said.where(answers.c.kind == "none").values(kind="skip"))
    told = select(events.c.number, events.c.details).where(
        events.c.kind == "settled",
        events.c.details["question"].as_integer().in_(about),
        events.c.details["state"].as_string() == "none",
    )
    for number, details in connection.execute(told).all():
        event = events.update().where(events.c.number == number)
        connection.execute(event.values(details={**details, "state": "skipped"}))
