"""Export questions to files for other tools, and import the answers."""

from attakit.service.exchange.answers import read_answers
from attakit.service.exchange.label_studio import label_config
from attakit.service.exchange.lines import (
    FILE_FORMATS,
    FileFormat,
    ImportReport,
    LineProblem,
    choose_file_format,
)
from attakit.service.exchange.questions import questions_in_pieces, write_questions

__all__ = [
    "FILE_FORMATS",
    "FileFormat",
    "ImportReport",
    "LineProblem",
    "choose_file_format",
    "label_config",
    "questions_in_pieces",
    "read_answers",
    "write_questions",
]
