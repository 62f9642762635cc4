"""Questions that several people answered store how likely each class is."""

from __future__ import annotations

from alembic.operations import Operations
from sqlalchemy import JSON, Column

revision = "0006"
down_revision = "0005"


def upgrade(op: Operations) -> None:
    """Add a column that may be empty."""
    op.add_column("questions", Column("chances", JSON))
