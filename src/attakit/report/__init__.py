"""Observers of a run, and what is made from their records: tables and the HTML report."""

from attakit.report.accuracy import Accuracy
from attakit.report.analysis import analyse_run
from attakit.report.analysis_page import write_analysis
from attakit.report.analysis_records import Analysis, StepAnalysis
from attakit.report.comparisons import Comparison, compare
from attakit.report.console import Progress, print_sheets, print_table
from attakit.report.features import FEATURES_FILE, FeatureRecord, Features, read_features
from attakit.report.figures import Figure, Row, summarise
from attakit.report.html import write_report
from attakit.report.jsonlines import STEPS_FILE, JsonLines, peak_memory_mb
from attakit.report.layouts import LAYOUTS, lay_out
from attakit.report.paper import Number, paper_number
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.report.plots import PLOTS, draw_plot
from attakit.report.runs import RunRecord, read_run
from attakit.report.sheet_forms import render_sheets
from attakit.report.sheets import Sheet
from attakit.report.tables import render
from attakit.report.verdicts import verdicts

__all__ = [
    "FEATURES_FILE",
    "LAYOUTS",
    "PICTURES_FILE",
    "PLOTS",
    "STEPS_FILE",
    "Accuracy",
    "Analysis",
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
    "StepAnalysis",
    "analyse_run",
    "compare",
    "draw_plot",
    "lay_out",
    "paper_number",
    "peak_memory_mb",
    "print_sheets",
    "print_table",
    "read_features",
    "read_run",
    "render",
    "render_sheets",
    "summarise",
    "verdicts",
    "write_analysis",
    "write_report",
]
