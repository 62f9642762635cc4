"""What reproduces the paper: theory, validation experiments, its numbers, layouts and analysis."""

from attakit.paper.analysis import analyse_run
from attakit.paper.analysis_page import write_analysis
from attakit.paper.analysis_records import Analysis, StepAnalysis
from attakit.paper.layouts import LAYOUTS, lay_out
from attakit.paper.numbers import paper_number
from attakit.paper.verdicts import verdicts

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
