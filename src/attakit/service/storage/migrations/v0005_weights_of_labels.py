"""Labels that several people agreed on store how far they can be trusted."""

from __future__ import annotations

from alembic.operations import Operations
from sqlalchemy import Column, Float

revision = "0005"
down_revision = "0004"


def upgrade(op: Operations) -> None:
    """Add a nullable column."""
    op.add_column("questions", Column("weight", Float))
