"""Observers of a run, and what is made from their records: tables and the HTML report."""

from attakit.report.accuracy import Accuracy
from attakit.report.analysis import analyse_run
from attakit.report.analysis_page import write_analysis
from attakit.report.analysis_records import Analysis, StepAnalysis
from attakit.report.console import Progress, print_table
from attakit.report.features import FEATURES_FILE, FeatureRecord, Features, read_features
from attakit.report.figures import Figure, Row, summarise
from attakit.report.html import write_report
from attakit.report.jsonlines import STEPS_FILE, JsonLines, peak_memory_mb
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.report.runs import RunRecord, read_run
from attakit.report.tables import render
from attakit.report.verdicts import verdicts

__all__ = [
    "FEATURES_FILE",
    "PICTURES_FILE",
    "STEPS_FILE",
    "Accuracy",
    "Analysis",
    "FeatureRecord",
    "Features",
    "Figure",
    "JsonLines",
    "Pictures",
    "Progress",
    "Row",
    "RunRecord",
    "StepAnalysis",
    "analyse_run",
    "peak_memory_mb",
    "print_table",
    "read_features",
    "read_run",
    "render",
    "summarise",
    "verdicts",
    "write_analysis",
    "write_report",
]
