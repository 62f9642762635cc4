"""SampleStore: samples from requests, until they are no longer needed or must be forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, func, null, select
from sqlalchemy.dialects import sqlite

from attakit.service.storage.database import Database
from attakit.service.storage.retention import forget_sample, remove_contents
from attakit.service.storage.rows import KNOWN, SampleState, ServedSample, field_values
from attakit.service.storage.tables import is_text, questions, samples, turns

_ARRAY = b"\x93NUMPY"  # first bytes of an array file


class SampleStore:
    """Samples in order of arrival, with their contents while these are stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, served: Sequence[ServedSample]) -> None:
        """Store answered samples. Existing ones stay unchanged."""
        if not served:
            return
        with self._database.write(exclusive=False) as connection:
            connection.execute(_insert(connection), [_values(one) for one in served])

    def add_known(self, examples: Sequence[ServedSample]) -> None:
        """Store samples whose class is known. The learner never learns from them."""
        if not examples:
            return
        with self._database.write() as connection:
            rows = [{**_values(one), "turn": KNOWN} for one in examples]
            connection.execute(_insert(connection), rows)

    def get(self, sample: str) -> ServedSample | None:
        """Return one sample with its content, if it exists."""
        if not is_text(sample):
            return None
        found = self._database.find(ServedSample, select(samples).where(samples.c.sample == sample))
        return found[0] if found else None

    def contents(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return contents by sample, without removed ones."""
        query = select(samples.c.sample, samples.c.content).where(
            samples.c.sample.in_(names), samples.c.content.is_not(None)
        )
        with self._database.read() as connection:
            return {row.sample: row.content for row in connection.execute(query)}

    def about(self, sample: str) -> ServedSample | None:
        """Return one sample without its content, which may be large, if it exists."""
        columns = [one for one in samples.c if one.name != "content"]
        query = select(*columns, null().label("content")).where(samples.c.sample == sample)
        found = self._database.find(ServedSample, query)
        return found[0] if found else None

    def array(self, sample: str) -> bytes | None:
        """Return the content of a sample if it is an array."""
        start = func.substr(samples.c.content, 1, len(_ARRAY)) == _ARRAY
        query = select(samples.c.content).where(samples.c.sample == sample, start)
        found = self._database.scalar(query)
        return None if found is None else bytes(found)

    def guesses(self, names: Sequence[str]) -> dict[str, int]:
        """Return the prediction for each sample, without its content."""
        query = select(samples.c.sample, samples.c.guess).where(samples.c.sample.in_(names))
        with self._database.read() as connection:
            return {row.sample: row.guess for row in connection.execute(query)}

    def untaken_names(self) -> tuple[str, ...]:
        """Return all samples that no turn has used yet, oldest first, without their contents."""
        query = select(samples.c.sample).where(_untaken()).order_by(samples.c.number)
        with self._database.read() as connection:
            return tuple(connection.scalars(query))

    def untaken_count(self) -> int:
        """Count the samples that no turn has used yet."""
        return int(self._scalar(func.count()) or 0)

    def untaken_bytes(self) -> int:
        """Return the size of the contents that no turn has used yet."""
        return int(self._scalar(func.sum(samples.c.size)) or 0)

    def oldest_untaken(self) -> float | None:
        """Return when the oldest sample arrived that no turn has used yet."""
        oldest = self._scalar(func.min(samples.c.at))
        return None if oldest is None else float(oldest)

    def count(self) -> int:
        """Count all samples that ever arrived, including removed ones."""
        known = select(func.count()).where(samples.c.turn == KNOWN).scalar_subquery()
        query = select(func.coalesce(func.max(samples.c.number), 0) - known)
        return int(self._database.scalar(query))

    def state(self, sample: str) -> SampleState | None:
        """Return the state of a sample; None if it is unknown."""
        if not is_text(sample):
            return None
        query = select(
            samples.c.forgotten,
            exists().where(questions.c.sample == samples.c.sample).label("asked"),
            exists()
            .where(turns.c.number == samples.c.turn, turns.c.numbers.is_not(None))
            .label("decided"),
        ).where(samples.c.sample == sample)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        if row.forgotten is not None:
            return "forgotten"
        if row.asked:
            return "asked"
        return "not asked" if row.decided else "undecided"

    def clean(
        self, images: int, days: float, megabytes: float, saved_turn: int, audit_window: int = 200
    ) -> int:
        """Remove the oldest contents that exceed a limit and are no longer needed.

        Samples without a question are removed completely. Samples that wait for the learner are
        removed too, oldest first: a stopped learner must not fill the disk.

        Parameters
        ----------
        images, days, megabytes
            Maximum number, age and total size of contents.
        saved_turn
            Turn of the learner's last checkpoint. Samples of later turns are still needed.
        audit_window
            Number of newest settled audit questions whose samples are still needed.

        Returns
        -------
        int
            Number of removed contents.
        """
        oldest = self._database.clock() - days * 86_400
        with self._database.write() as connection:
            return remove_contents(
                connection, images, oldest, int(megabytes * 1e6), saved_turn, audit_window
            )

    def forget(self, sample: str, who: str) -> bool:
        """Remove content, guess and answers of a sample for good; False if nothing exists."""
        if not is_text(sample):
            return False
        with self._database.write() as connection:
            done = forget_sample(connection, sample, who, self._database.clock())
        if done:
            self._database.wipe()
        return done

    def to_forget(self) -> tuple[str, ...]:
        """Return samples that the learner must still remove from its memory."""
        query = (
            select(samples.c.sample)
            .where(
                samples.c.forgotten.is_not(None),
                samples.c.turn.is_not(None),
                samples.c.forgotten_turn.is_(None),
            )
            .order_by(samples.c.forgotten, samples.c.number)
        )
        with self._database.read() as connection:
            return tuple(connection.scalars(query))

    def _scalar(self, value: ColumnElement[Any]) -> Any:
        return self._database.scalar(select(value).select_from(samples).where(_untaken()))


def _untaken() -> ColumnElement[bool]:
    return and_(samples.c.turn.is_(None), samples.c.forgotten.is_(None))


def _insert(connection: Connection) -> Any:
    insert: Any = sqlite.insert
    if connection.dialect.name != "sqlite":
        # Importing this takes a tenth of the start-up of `attakit token`.
        from sqlalchemy.dialects import postgresql  # noqa: PLC0415

        insert = postgresql.insert
    return insert(samples).on_conflict_do_nothing(index_elements=[samples.c.sample])


def _values(served: ServedSample) -> dict[str, Any]:
    return {**field_values(served, "number"), "size": len(served.content or b"")}
