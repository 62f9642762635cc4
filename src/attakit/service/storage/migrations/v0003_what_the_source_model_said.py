"""Questions keep what the source model said about their sample when they were put.

The gate compares it with what people say, also after the content of the sample is gone. Of older
questions it is not known.
"""

from __future__ import annotations

from alembic.operations import Operations
from sqlalchemy import Column, Float, Integer

revision = "0003"
down_revision = "0002"


def upgrade(op: Operations) -> None:
    """Add two columns that may be empty."""
    op.add_column("questions", Column("source_guess", Integer))
    op.add_column("questions", Column("source_entropy", Float))
