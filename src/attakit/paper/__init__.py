"""Code to reproduce the paper: theory, validation experiments, numbers, layouts and analysis."""

from attakit.paper.analysis.analysis_page import write_analysis
from attakit.paper.analysis.analysis_records import Analysis, StepAnalysis
from attakit.paper.analysis.run_analysis import analyse_run
from attakit.paper.analysis.verdicts import verdicts
from attakit.paper.tables.layouts import LAYOUTS, lay_out
from attakit.paper.tables.numbers import paper_number

__all__ = [
    "LAYOUTS",
    "Analysis",
    "StepAnalysis",
    "analyse_run",
    "lay_out",
    "paper_number",
    "verdicts",
    "write_analysis",
]
