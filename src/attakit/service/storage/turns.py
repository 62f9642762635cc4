"""TurnStore: what each turn of the learner depends on, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection, and_, bindparam, func, or_, select

from attakit.errors import StateError
from attakit.service.storage.database import Database
from attakit.service.storage.rows import Turn, TurnNumbers, field_values, read_row
from attakit.service.storage.tables import questions, samples, turns


class TurnStore:
    """The log from which the learner's state can be restored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def plan(self, turn: Turn, passed: Sequence[str] = ()) -> None:
        """Write a turn before it starts, and mark what it uses. Safe to call twice.

        `passed` are waiting samples that no turn will use.
        """
        with self._database.write() as connection:
            if not _is_planned(connection, turn):
                connection.execute(turns.insert().values(field_values(turn)))
                _take(connection, turn, passed)

    def after(self, number: int) -> tuple[Turn, ...]:
        """Return all turns after this one, in order."""
        query = select(turns).where(turns.c.number > number).order_by(turns.c.number)
        return self._database.find(Turn, query)

    def last(self) -> int:
        """Return the number of the newest turn; -1 before the first."""
        with self._database.read() as connection:
            return _last(connection)

    def finish(self, number: int, numbers: Mapping[str, float]) -> None:
        """Store the results of a turn, for the dashboard."""
        with self._database.write() as connection:
            this = turns.c.number == number
            changed = connection.execute(turns.update().where(this).values(numbers=numbers))
            if changed.rowcount == 0:
                raise StateError(
                    f"Turns: turn {number} cannot be finished because it was never planned. Plan "
                    "it before you take it."
                )

    def recent(self, limit: int) -> tuple[tuple[Turn, Mapping[str, float] | None], ...]:
        """Return the newest turns with their results, newest first; None for an unfinished one."""
        query = select(turns).order_by(turns.c.number.desc()).limit(limit)
        with self._database.read() as connection:
            return tuple((read_row(Turn, row), row.numbers) for row in connection.execute(query))

    def series(self, since: float, points: int) -> tuple[TurnNumbers, ...]:
        """Return finished turns since a time, oldest first: evenly spaced ones and the newest."""
        wanted = and_(turns.c.at >= since, turns.c.numbers.is_not(None))
        bounds = select(func.min(turns.c.number), func.max(turns.c.number)).where(wanted)
        with self._database.read() as connection:
            first, last = connection.execute(bounds).one()
            if first is None:
                return ()
            step = -(-(last - first + 1) // points)
            spaced = or_((last - turns.c.number) % step == 0, turns.c.number == last)
            query = select(turns.c.number, turns.c.at, turns.c.numbers).where(wanted, spaced)
        return self._database.find(TurnNumbers, query.order_by(turns.c.number))


def _last(connection: Connection) -> int:
    newest = connection.scalar(select(func.max(turns.c.number)))
    return -1 if newest is None else int(newest)


def _is_planned(connection: Connection, turn: Turn) -> bool:
    """True if this very turn was written before."""
    row = connection.execute(select(turns).where(turns.c.number == turn.number)).one_or_none()
    if row is not None and replace(read_row(Turn, row), at=turn.at) == turn:
        return True
    expected = _last(connection) + 1
    if turn.number != expected:
        raise StateError(
            f"Turns: turn {turn.number} cannot be planned because the next one is {expected}. Let "
            "only one learner work on a database."
        )
    return False


def _take(connection: Connection, turn: Turn, passed: Sequence[str]) -> None:
    by_name = samples.c.sample == bindparam("name")
    taken = samples.update().where(by_name, samples.c.turn.is_(None)).values(turn=turn.number)
    _change_all(connection, taken, (*turn.samples, *passed))
    outcome = questions.update().where(questions.c.question == bindparam("name"))
    _change_all(connection, outcome.values(taken=turn.number), turn.settled)
    dropped = samples.update().where(by_name).values(forgotten_turn=turn.number)
    _change_all(connection, dropped, turn.forgotten)


def _change_all(connection: Connection, change: object, names: Sequence[object]) -> None:
    if names:
        connection.execute(change, [{"name": name} for name in names])  # type: ignore[call-overload]
