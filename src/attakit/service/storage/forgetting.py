"""How a sample is forgotten: its row stays, so that the log makes sense, but nothing of it."""

from __future__ import annotations

from sqlalchemy import Connection, null, select

from attakit.service.storage.events import add_event
from attakit.service.storage.tables import answers, leases, questions, samples


def forget_sample(connection: Connection, sample: str, who: str, now: float) -> bool:
    """Remove content, guesses and labels, and close open questions; False if nothing is there.

    A question that was refunded stays so: a learner that replays its log must find the same budget.
    """
    known = samples.update().where(samples.c.sample == sample, samples.c.forgotten.is_(None))
    if not connection.execute(known.values(content=None, size=0, forgotten=now)).rowcount:
        return False
    about = select(questions.c.question).where(questions.c.sample == sample)
    connection.execute(leases.delete().where(leases.c.question.in_(about)))
    connection.execute(answers.update().where(answers.c.question.in_(about)).values(label=null()))
    asked = questions.update().where(questions.c.sample == sample)
    connection.execute(asked.where(questions.c.settled.is_(None)).values(settled=now))
    paid, unfit = questions.c.state.in_(("open", "answered")), questions.c.state == "none"
    connection.execute(asked.where(paid).values(state="forgotten"))
    connection.execute(asked.where(unfit).values(state="skipped"))  # what was said is gone too
    connection.execute(asked.values(label=null(), guesses=[], wanted=0))
    add_event(connection, now, "forgotten", who, sample=sample)
    return True
