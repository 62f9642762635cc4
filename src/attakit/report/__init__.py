"""Observers of a run, and what is made from their records: tables and the HTML report."""

from attakit.report.accuracy import Accuracy
from attakit.report.console import Progress, print_table
from attakit.report.figures import Figure, Row, summarise
from attakit.report.html import write_report
from attakit.report.jsonlines import STEPS_FILE, JsonLines, peak_memory_mb
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.report.runs import RunRecord, read_run
from attakit.report.tables import render

__all__ = [
    "PICTURES_FILE",
    "STEPS_FILE",
    "Accuracy",
    "Figure",
    "JsonLines",
    "Pictures",
    "Progress",
    "Row",
    "RunRecord",
    "peak_memory_mb",
    "print_table",
    "read_run",
    "render",
    "summarise",
    "write_report",
]
