"""A selector's choice within an allowance: the limit per class, and replayed steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attakit.protocols import Selector
from attakit.queries import Allowance, SampleId
from attakit.records import Rows, Selection


def select_allowed(
    selector: Selector, candidates: Rows, known: Rows, allowance: Allowance, step: int
) -> Selection:
    """Let a selector choose within the allowance.

    The class of a candidate is the one that the asking model predicts.

    >>> import torch
    >>> from attakit.select.uniform import Uniform
    >>> rows = Rows(("a", "b"), torch.zeros(2, 1), torch.eye(2), torch.ones(2))
    >>> none = Rows((), torch.zeros(0, 1), torch.zeros(0, 2), torch.zeros(0))
    >>> select_allowed(Uniform(), rows, none, Allowance(2, per_class={1: 5}), step=0).samples
    ('b',)
    """
    found = Selection()
    if allowance.limit > 0 and len(candidates):
        found = _select_per_class(selector, candidates, known, allowance, step)
    if allowance.repeat is None or set(found.samples) == set(allowance.repeat):
        return found
    names = tuple(name for name in candidates.samples if name in allowance.repeat)
    names = names[: allowance.count]
    return Selection(names, dict.fromkeys(names, 1.0))


def _select_per_class(
    selector: Selector, candidates: Rows, known: Rows, allowance: Allowance, step: int
) -> Selection:
    left = allowance.per_class
    if left is None:
        return selector.select(candidates, known, allowance.limit, step)
    classes = candidates.logits.argmax(dim=1).tolist()
    allowed = candidates.take([at for at, kind in enumerate(classes) if left.get(kind, 0) > 0])
    if len(allowed) == 0:
        return Selection()
    return _within(selector.select(allowed, known, allowance.limit, step), allowed, left)


def _within(found: Selection, candidates: Rows, left: Mapping[int, int]) -> Selection:
    """Return the choice, best first, within the limits per class."""
    kept, dropped = [], set()
    remaining = dict(left)
    predicted = _predicted(candidates, found.samples)
    for sample, kind in zip(found.samples, predicted, strict=True):
        if remaining[kind] > 0:
            remaining[kind] -= 1
            kept.append(sample)
        else:
            dropped.add(sample)
    weights = {name: each for name, each in found.weights.items() if name not in dropped}
    return Selection(tuple(kept), weights, found.clusters)


def _predicted(rows: Rows, samples: Sequence[SampleId]) -> list[int]:
    places = {name: place for place, name in enumerate(rows.samples)}
    classes = rows.logits.argmax(dim=1).tolist() if len(rows) else []
    return [classes[places[name]] for name in samples]
