"""Questions store the source model's prediction for their sample.

The gate compares it with what people say, even after the content of the sample is gone. For older
questions it is unknown.
"""

from __future__ import annotations

from alembic.operations import Operations
from sqlalchemy import Column, Float, Integer

revision = "0003"
down_revision = "0002"


def upgrade(op: Operations) -> None:
    """Add two nullable columns."""
    op.add_column("questions", Column("source_guess", Integer))
    op.add_column("questions", Column("source_entropy", Float))
