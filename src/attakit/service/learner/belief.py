"""Decide whether to believe people, from the evidence for and against them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from attakit.service.learner.checks import Check, Evidence
from attakit.service.learner.honesty import (
    Agreement,
    KnownAnswers,
    known_answers,
    people_agree,
    source_agreement,
)
from attakit.service.learner.names import FEW_CLASSES, own_names
from attakit.service.learner.sequences import log_threshold
from attakit.service.learner.wording import percent
from attakit.settings.service import GateTable

_DOUBT = math.log(3)  # rejecting needs less evidence than trusting
_WAIVER = "gate.trust = 0"
_UNCERTAIN = "it is not certain yet that people answer honestly"
_ASKED = "All known examples were asked about: add more of them to the folder `gate.known`."
_HINT = "Known examples (`gate.known`) settle this sooner."


def believe(table: GateTable, seen: Evidence) -> Check:
    """Check that people agree with something that does not depend on them.

    If there are known examples, they alone decide, because they prove most. Otherwise the source
    model may contradict people or agree with them, or people may agree with each other.
    """
    found = source_agreement(seen.said, seen.classes, table.trust, table.audit_window)
    numbers = {"trust": found.sure_share, "trust_answers": found.count, "trust_log_e": found.log_e}
    if not found.count:
        del numbers["trust"]
    if table.trust == 0:
        return Check(True, f"people are believed without evidence (`{_WAIVER}`)", numbers)
    known = known_answers(seen.known)
    if seen.known or seen.known_left:
        check = _by_known(table, seen, known)
    else:
        check = _by_source(table, seen, found)
    proven = {"known_answers": known.count, "believed": check.passed}
    return replace(check, numbers={**numbers, **check.numbers, **proven}, waiver=_WAIVER)


def _by_known(table: GateTable, seen: Evidence, known: KnownAnswers) -> Check:
    needed = log_threshold(table.confidence)
    text = f"people are right on {known.right} of {known.count} known examples"
    if known.log_e >= needed:
        return Check(True, text)
    if known.log_e_below >= needed:
        return Check(False, f"{text}, so they do not know the classes or use other names")
    missing = known.missing(table.confidence, seen.known_left, seen.check_share)
    hint = "" if seen.known_left else _ASKED
    return Check(False, f"{_UNCERTAIN}: {text}", missing=missing, hint=hint)


def _by_source(table: GateTable, seen: Evidence, found: Agreement) -> Check:
    needed = log_threshold(table.confidence)
    agreed = (
        f"people agree with the source model on {percent(found.share)} of {found.count} answers, "
        f"chance would give {percent(1 / seen.classes)}"
    )
    doubt = _doubt(found, agreed, needed)
    if doubt:
        return Check(False, doubt, hint=_HINT)
    names = own_names(seen.said, seen.classes) if seen.classes <= FEW_CLASSES else None
    numbers: Mapping[str, float] = {} if names is None else {"names_log_e": names.log_e}
    proven = names is None or names.log_e >= needed
    if found.log_e >= needed and proven:
        return Check(True, agreed, numbers)
    if people_agree(seen.pairs, seen.classes) >= needed:
        return Check(True, f"people agree with each other on {len(seen.pairs)} samples", numbers)
    text = f"{_UNCERTAIN}: {agreed}"
    more = found.missing(table.confidence)
    if names is not None and found.log_e >= needed:
        text = (
            f"it is not certain yet that people use the classes' own names: {agreed}, and if its "
            f"classes were renamed, they would agree on {percent(names.renamed_share)} of the audit"
        )
        audited = names.missing(table.confidence)
        more = None if audited is None else seen.of_all(audited)
    return Check(False, text, numbers, more, hint=_HINT)


def _doubt(found: Agreement, agreed: str, needed: float) -> str:
    """Return the evidence against people, in words; empty if there is none."""
    cause = (
        "Either they do so on purpose, or the source model is wrong too often, or `classes` is not "
        "in the order of the model's outputs"
    )
    if found.log_e_below >= needed:
        return f"{agreed}, so they contradict it. {cause}"
    if found.log_e_renamed >= _DOUBT:
        return (
            f"{agreed}, but they would agree on {percent(found.renamed_share)} if its classes were "
            f"renamed, so they use other names. {cause}"
        )
    return ""
