"""What must survive a crash: one database for samples, questions, answers, versions and events."""

from attakit.service.storage.rows import (
    Event,
    Gate,
    GivenAnswer,
    LabelRules,
    Lease,
    Promotion,
    Question,
    QuestionCounts,
    Served,
    Token,
    Turn,
    Version,
)
from attakit.service.storage.storage import Storage, open_storage

__all__ = [
    "Event",
    "Gate",
    "GivenAnswer",
    "LabelRules",
    "Lease",
    "Promotion",
    "Question",
    "QuestionCounts",
    "Served",
    "Storage",
    "Token",
    "Turn",
    "Version",
    "open_storage",
]
