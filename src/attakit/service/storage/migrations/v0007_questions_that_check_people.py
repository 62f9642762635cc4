"""Turns list the samples whose questions check people."""

from __future__ import annotations

from alembic.operations import Operations
from sqlalchemy import JSON, Column

revision = "0007"
down_revision = "0006"


def upgrade(op: Operations) -> None:
    """Add a column that is empty for earlier turns."""
    op.add_column("turns", Column("checks", JSON))
