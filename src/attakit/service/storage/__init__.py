"""What must survive a crash: one database for samples, questions, answers, versions, events."""

from attakit.service.storage.rows import (
    Event,
    Gate,
    GivenAnswer,
    LabelRules,
    Lease,
    Promotion,
    Question,
    QuestionCounts,
    ServedSample,
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
    "ServedSample",
    "Storage",
    "Token",
    "Turn",
    "Version",
    "open_storage",
]
