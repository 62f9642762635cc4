"""Observers of a run, and what is built from their records: tables and the HTML report."""

from attakit.report.accuracy import Accuracy
from attakit.report.comparisons import Comparison, compare
from attakit.report.console import Progress, print_table
from attakit.report.features import FEATURES_FILE, FeatureRecord, Features, read_features
from attakit.report.html import write_report
from attakit.report.jsonlines import STEPS_FILE, JsonLines, peak_memory_mb
from attakit.report.panels import PLOTS
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.report.plots import draw_plot
from attakit.report.runs import RunRecord, read_run
from attakit.report.summaries import MeanStd, MethodSummary, summarise
from attakit.report.table_forms import render_tables
from attakit.report.tables import PaperNumber, ResultTable, method_table

__all__ = [
    "FEATURES_FILE",
    "PICTURES_FILE",
    "PLOTS",
    "STEPS_FILE",
    "Accuracy",
    "Comparison",
    "FeatureRecord",
    "Features",
    "JsonLines",
    "MeanStd",
    "MethodSummary",
    "PaperNumber",
    "Pictures",
    "Progress",
    "ResultTable",
    "RunRecord",
    "compare",
    "draw_plot",
    "method_table",
    "peak_memory_mb",
    "print_table",
    "read_features",
    "read_run",
    "render_tables",
    "summarise",
    "write_report",
]
