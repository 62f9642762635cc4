"""Questions lose the column `copy`: a sample is asked about once in a turn.

Only settings that imitate the public SimATTA code ever asked more often. Such a repeated question
keeps its row, its label and its answers. Its purpose becomes "learn repeat 1", "learn repeat 2", …:
so the key stays unique, and the learner, which would count the sample twice, leaves it out.
"""

from __future__ import annotations

from alembic.operations import Operations
from sqlalchemy import JSON, Integer, String, cast, column, table

revision = "0002"
down_revision = "0001"

# As PostgreSQL names a constraint without a name; SQLite gives it none, so Alembic makes this one.
_NAMES = {"uq": "%(table_name)s_%(column_0_N_name)s_key"}
_OLD_KEY = "questions_sample_turn_copy_purpose_key"


def upgrade(op: Operations) -> None:
    """Mark the repeated questions, and take the column and its place in the key away."""
    questions = table("questions", column("copy", Integer), column("purpose", String))
    repeated = questions.update().where(questions.c.copy > 0)
    number = cast(questions.c.copy, String)
    op.execute(repeated.values(purpose=questions.c.purpose + " repeat " + number))
    with op.batch_alter_table("questions", naming_convention=_NAMES) as batch:
        batch.drop_constraint(_OLD_KEY, type_="unique")
        batch.drop_column("copy")
        batch.create_unique_constraint("questions_once", ["sample", "turn", "purpose"])
    # Versions of attakit without migrations look here, and refuse tables that are not theirs.
    facts = table("facts", column("name", String), column("value", JSON))
    op.execute(facts.update().where(facts.c.name == "schema").values(value=2))
