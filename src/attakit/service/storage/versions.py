"""VersionStore: saved models, their gate results, and which one is served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from attakit.errors import StateError
from attakit.service.storage.database import Database
from attakit.service.storage.rows import Gate, Promotion, Version, field_values, read_row
from attakit.service.storage.tables import add_event, gates, is_number, promotions, versions

_SOURCE = 0

LEARNER = "learner"


class VersionStore:
    """Versions, gates and promotions. None of them ever changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, version: Version) -> Version:
        """Record a saved model; if one of the same turn exists, return that one."""
        with self._database.write() as connection:
            known = connection.execute(
                _versions().where(versions.c.turn == version.turn)
            ).one_or_none()
            if known is not None:
                return _read_version(known)
            return _add(connection, version, self._database.clock())

    def next_number(self) -> int:
        """Return a number that no version has yet."""
        with self._database.read() as connection:
            return _next_number(connection)

    def gate(self, number: int, gate: Gate) -> None:
        """Record the gate's result for a version. The first record stays."""
        with self._database.write() as connection:
            _check_known(connection, number)
            _add_gate(connection, number, gate, self._database.clock())

    def pass_gate(self, number: int, gate: Gate, after: Promotion) -> Gate:
        """Record that a version passed and serve it, both or neither. Return what is recorded.

        `after` is the promotion that was current while the version was judged. If another one is
        current now, a person has chosen, and the version is held back.
        """
        now = self._database.clock()
        with self._database.write() as connection:
            _check_known(connection, number)
            newest = _newest_promotion(connection)
            if newest is not None and newest.number != after.number:
                reason = (
                    f"Held back: {newest.who} chose version {newest.version} while this one was "
                    "judged."
                )
                gate = Gate(False, reason, gate.numbers, gate.at)
            if _add_gate(connection, number, gate, now) and gate.passed:
                _add_promotion(connection, number, gate.reason, LEARNER, now)
        return gate

    def promote(
        self,
        number: int,
        reason: str,
        who: str,
        *,
        key: str | None = None,
        after: Promotion | None = None,
    ) -> bool:
        """Serve a version from now on; returns True if it was promoted now.

        Parameters
        ----------
        number, reason, who
            The version, one sentence for people, and the person or process that promotes it.
        key
            A promotion with the key of an earlier one is ignored: a repeated turn must not undo
            what people chose since.
        after
            A promotion that must still be current, otherwise this one is ignored.
        """
        now = self._database.clock()
        with self._database.write() as connection:
            _check_known(connection, number)
            if key is not None and connection.scalar(
                select(promotions.c.key).where(promotions.c.key == key)
            ):
                return False
            newest = _newest_promotion(connection)
            if after is not None and newest is not None and newest.number != after.number:
                return False
            _add_promotion(connection, number, reason, who, now, key)
        return True

    def current(self) -> Promotion | None:
        """Return the current promotion, if there was any."""
        newest = self.promotions(limit=1)
        return newest[0] if newest else None

    def all(self) -> tuple[Version, ...]:
        """Return all versions with their gates, oldest first. After months there may be many."""
        return self._find(_versions().order_by(versions.c.number))

    def recent(self, limit: int) -> tuple[Version, ...]:
        """The newest versions, newest first."""
        return self._find(_versions().order_by(versions.c.number.desc()).limit(limit))

    def get(self, numbers: Iterable[int]) -> dict[int, Version]:
        """Return versions by number, without unknown ones."""
        known = versions.c.number.in_([number for number in numbers if is_number(number)])
        return {one.number: one for one in self._find(_versions().where(known))}

    def of_turn(self, turn: int) -> Version | None:
        """Return the version that a turn created, if any."""
        found = self._find(_versions().where(versions.c.turn == turn))
        return found[0] if found else None

    def known_files(self, files: Iterable[str]) -> tuple[str, ...]:
        """Return those of some files that belong to versions."""
        these = select(versions.c.file).where(versions.c.file.in_([*files]))
        with self._database.read() as connection:
            return tuple(connection.scalars(these))

    def unjudged(self) -> tuple[Version, ...]:
        """Versions without a gate, oldest first."""
        return self._find(_versions().where(gates.c.version.is_(None)).order_by(versions.c.number))

    def promotions(self, limit: int) -> tuple[Promotion, ...]:
        """The newest promotions, newest first."""
        return self._database.find(Promotion, _promotions().limit(limit))

    def _find(self, query: Select[Any]) -> tuple[Version, ...]:
        with self._database.read() as connection:
            return tuple(_read_version(row) for row in connection.execute(query))


def _versions() -> Select[Any]:
    proven = [column.label(f"gate_{column.name}") for column in gates.c]
    return select(versions, *proven).outerjoin(gates, gates.c.version == versions.c.number)


def _promotions() -> Select[Any]:
    """All promotions, newest first."""
    number = promotions.c.promotion.label("number")
    return select(promotions, number).order_by(promotions.c.promotion.desc())


def _read_version(row: Row[Any]) -> Version:
    gate = None if row.gate_version is None else read_row(Gate, row, "gate_")
    return replace(read_row(Version, row), gate=gate)


def _add(connection: Connection, version: Version, now: float) -> Version:
    expected = _next_number(connection)
    if version.number != expected:
        raise StateError(
            f"Versions: number {version.number} cannot be added because the next one is "
            f"{expected}. Let only one learner work on a database."
        )
    connection.execute(versions.insert().values(field_values(version, "gate")))
    details = {"version": version.number, "turn": version.turn, "weights": version.weights}
    add_event(connection, now, "version", LEARNER, **details)
    return _read_version(
        connection.execute(_versions().where(versions.c.number == version.number)).one()
    )


def _add_gate(connection: Connection, number: int, gate: Gate, now: float) -> bool:
    known = select(gates.c.version).where(gates.c.version == number)
    if connection.scalar(known) is not None:
        return False
    values = {**field_values(gate), "version": number, "at": gate.at or now}
    connection.execute(gates.insert().values(values))
    details = {"version": number, "passed": gate.passed, "reason": gate.reason}
    add_event(connection, now, "gate", LEARNER, **details)
    return True


def _add_promotion(
    connection: Connection, number: int, reason: str, who: str, now: float, key: str | None = None
) -> None:
    connection.execute(
        promotions.insert().values(key=key, version=number, reason=reason, who=who, at=now)
    )
    add_event(connection, now, "promotion", who, version=number, reason=reason)


def _newest_promotion(connection: Connection) -> Promotion | None:
    row = connection.execute(_promotions().limit(1)).one_or_none()
    return None if row is None else read_row(Promotion, row)


def _next_number(connection: Connection) -> int:
    newest = connection.scalar(select(func.max(versions.c.number)))
    return 0 if newest is None else int(newest) + 1


def _check_known(connection: Connection, number: int) -> None:
    this = select(versions.c.number).where(versions.c.number == number)
    if not is_number(number) or connection.scalar(this) is None:
        raise StateError(
            f"Versions: there is no version {number}. The newest is "
            f"{_next_number(connection) - 1}; choose one that was saved."
        )
