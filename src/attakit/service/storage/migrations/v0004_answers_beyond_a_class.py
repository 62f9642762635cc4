"""Questions may propose a class, answers carry a comment, samples their sender's notes.

Before, "none of these" was refunded; now it is paid. Old ones are marked, so that a learner that
replays its log finds the same budget.
"""

from __future__ import annotations

from alembic.operations import Operations
from sqlalchemy import JSON, Boolean, Column, Integer, String, column, table, true

revision = "0004"
down_revision = "0003"


def upgrade(op: Operations) -> None:
    """Add nullable columns, and mark what was refunded."""
    op.add_column("questions", Column("proposed", Integer))
    op.add_column("questions", Column("refunded", Boolean))
    op.add_column("answers", Column("comment", String))
    op.add_column("answers", Column("flagged", Boolean))
    op.add_column("samples", Column("caller_id", String))
    op.add_column("samples", Column("text", String))
    op.add_column("samples", Column("notes", JSON))
    questions = table("questions", column("state", String), column("refunded", Boolean))
    unfit = questions.update().where(questions.c.state == "none")
    op.execute(unfit.values(refunded=true()))
