"""Sentences below the paper's layouts: how to read them, and what the paper's numbers are."""

from __future__ import annotations

from attakit.paper.tables.numbers import PaperTable

_MAX_LEGEND = 6  # more letters are abbreviations, which explain themselves

READ_COMPARISON = (
    "Accuracy in percent, ± the standard deviation over seeds. Now: accuracy of the predictions "
    "along the stream; the mean is over segments, not samples. After: accuracy of the final model "
    "on whole domains, labelled samples included. No label: mean over targets without labelled "
    "samples."
)
READ_POOL = (
    "Accuracy in percent on whole domains after adaptation, mean (standard deviation) over runs. "
    "Streams of different order count as runs. Labelled samples are included; no label: mean over "
    "targets without them. Methods that take a pool see all target samples before they choose. "
    "Those that take a stream see each batch once."
)
READ_CORRUPTIONS = (
    "Accuracy in percent of the predictions along the stream, ± the standard deviation over seeds. "
    "Seconds are per 10,000 images, on noise and blur if the stream has them. The mean is over the "
    "corruptions that the paper averages."
)
READ_COMPLETE = (
    "Accuracy in percent, ± the standard deviation over seeds. Current: accuracy of the "
    "predictions along each segment. Labels: number received by its end. Other rows: accuracy on "
    "whole domains at that moment. Before: accuracy of the method before its first step; in the "
    "paper, of the source model with its stored statistics. A dash: not measured "
    "(report.domains_after_each measures it)."
)
READ_MEMORY = "MB: peak memory of the process."


def legend(table: PaperTable | None) -> list[str]:
    """Explain the letters."""
    if table is None or not 0 < len(table.domains) <= _MAX_LEGEND:
        return []
    return [", ".join(f"{letter}: {name}" for letter, name in table.domains.items()) + "."]


def paper_note(table: PaperTable | None) -> list[str]:
    """Explain the rows called paper."""
    if table is None:
        return []
    number = table.name.removeprefix("table-").partition("-")[0]
    whole = " Its source accuracy is over the whole source domain, trained on or not."
    return [
        f"Rows “paper”: numbers of the paper's table {number}. We computed means that it does not "
        "print." + (whole if table.source else "")
    ]
