"""Observers of a run, and what is made from their records: tables and the HTML report."""

from attakit.report.accuracy import Accuracy
from attakit.report.comparisons import Comparison, compare
from attakit.report.console import Progress, print_sheets, print_table
from attakit.report.features import FEATURES_FILE, FeatureRecord, Features, read_features
from attakit.report.figures import Figure, Number, Row, summarise
from attakit.report.html import write_report
from attakit.report.jsonlines import STEPS_FILE, JsonLines, peak_memory_mb
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.report.plots import PLOTS, draw_plot
from attakit.report.runs import RunRecord, read_run
from attakit.report.sheet_forms import render_sheets
from attakit.report.sheets import Sheet
from attakit.report.tables import render

__all__ = [
    "FEATURES_FILE",
    "PICTURES_FILE",
    "PLOTS",
    "STEPS_FILE",
    "Accuracy",
    "Comparison",
    "FeatureRecord",
    "Features",
    "Figure",
    "JsonLines",
    "Number",
    "Pictures",
    "Progress",
    "Row",
    "RunRecord",
    "Sheet",
    "compare",
    "draw_plot",
    "peak_memory_mb",
    "print_sheets",
    "print_table",
    "read_features",
    "read_run",
    "render",
    "render_sheets",
    "summarise",
    "write_report",
]
