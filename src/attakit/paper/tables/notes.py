"""Sentences below the paper's layouts: how to read them, and what the paper's numbers are."""

from __future__ import annotations

from attakit.paper.tables.numbers import PaperTable

_MAX_LEGEND = 6  # more letters are abbreviations, which explain themselves

READ_COMPARISON = (
    "Accuracy in percent, ± the standard deviation over seeds. Now: of the answers along the "
    "stream; its mean is over segments, not samples. After: of the model that the stream left, on "
    "whole domains, labelled samples included; no label: mean over targets without them."
)
READ_POOL = (
    "Accuracy in percent on whole domains after adaptation, mean (standard deviation) over runs; "
    "streams of different order count as runs. Labelled samples are included; no label: mean over "
    "targets without them. Methods that take a pool see all target samples before they choose, "
    "those that take a stream see each batch once."
)
READ_CORRUPTIONS = (
    "Accuracy in percent of the answers along the stream, ± the standard deviation over seeds. "
    "Seconds are per 10,000 images, on noise and blur where the stream has them. The mean is over "
    "the corruptions that the paper averages."
)
READ_COMPLETE = (
    "Accuracy in percent, ± the standard deviation over seeds. Current: of the answers along each "
    "segment. Labels: received by its end. Other rows: accuracy on whole domains at that moment; "
    "before: of the method before its first step, in the paper of the source model with its stored "
    "statistics. A dash: not measured (report.domains_after_each measures it)."
)
READ_MEMORY = "MB: peak memory of the process."


def legend(table: PaperTable | None) -> list[str]:
    """What the letters stand for."""
    if table is None or not 0 < len(table.domains) <= _MAX_LEGEND:
        return []
    return [", ".join(f"{letter}: {name}" for letter, name in table.domains.items()) + "."]


def paper_note(table: PaperTable | None) -> list[str]:
    """What the rows called paper are."""
    if table is None:
        return []
    number = table.name.removeprefix("table-").partition("-")[0]
    whole = " Its source accuracy is over the whole source domain, trained on or not."
    return [
        f"Rows “paper”: the paper's table {number}; means it does not print are ours."
        + (whole if table.source else "")
    ]
