"""Questions lose the column `copy`: a sample is asked about once in a turn.

Only settings that imitate the public SimATTA code ever asked more often. A repeated question keeps
its row, its label and its answers. Its purpose becomes "learn repeat 1", "learn repeat 2", …. So
the key stays unique, and the learner ignores the question instead of counting the sample twice.
"""

from __future__ import annotations

from alembic.operations import Operations
from sqlalchemy import JSON, Integer, String, cast, column, table

revision = "0002"
down_revision = "0001"

# PostgreSQL's default name of the constraint. SQLite gives it none, so Alembic uses this one.
_NAMES = {"uq": "%(table_name)s_%(column_0_N_name)s_key"}
_OLD_KEY = "questions_sample_turn_copy_purpose_key"


def upgrade(op: Operations) -> None:
    """Mark the repeated questions, and remove the column from the table and its key."""
    questions = table("questions", column("copy", Integer), column("purpose", String))
    repeated = questions.update().where(questions.c.copy > 0)
    number = cast(questions.c.copy, String)
    op.execute(repeated.values(purpose=questions.c.purpose + " repeat " + number))
    with op.batch_alter_table("questions", naming_convention=_NAMES) as batch:
        batch.drop_constraint(_OLD_KEY, type_="unique")
        batch.drop_column("copy")
        batch.create_unique_constraint("questions_once", ["sample", "turn", "purpose"])
    # attakit versions without migrations look here, and refuse tables they do not know.
    facts = table("facts", column("name", String), column("value", JSON))
    op.execute(facts.update().where(facts.c.name == "schema").values(value=2))
