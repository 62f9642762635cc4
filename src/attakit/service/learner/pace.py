"""A selector with a quota for every class, whose clock can run faster after an alarm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import torch

from attakit.protocols import Selector
from attakit.queries import SampleId
from attakit.records import Rows, Selection


class PacedSelector:
    """Lets another selector choose, at its own steps, and only of classes that have a quota left.

    The class of a candidate is the one that the asking model guesses. `steps` and `left` are set
    before each turn; with both given, the choice depends on the arguments alone.

    Parameters
    ----------
    selector
        Chooses.

    Attributes
    ----------
    steps
        Steps of the selector that this turn stands for: one, or several after an alarm.
    left
        Questions that may still be put about each class; None sets no quota. A class that is not
        named has none left.
    only
        Samples that were chosen when the turn was taken before. If the selector chooses others now,
        because a sample is gone or a setting was changed, these are chosen all the same. None where
        nothing was chosen yet.

    Examples
    --------
    >>> from attakit.select.uniform import Uniform
    >>> rows = Rows(("a", "b"), torch.zeros(2, 1), torch.eye(2), torch.ones(2))
    >>> none = Rows((), torch.zeros(0, 1), torch.zeros(0, 2), torch.zeros(0))
    >>> paced = PacedSelector(Uniform())
    >>> paced.left = {1: 5}
    >>> paced.select(rows, none, limit=2, step=0).samples
    ('b',)
    """

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self.steps: Sequence[int] = ()
        self.left: Mapping[int, int] | None = None
        self.only: Collection[str] | None = None

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates."""
        found = self._choose(candidates, known, limit, step)
        if self.only is None or set(found.samples) == set(self.only):
            return found
        names = tuple(name for name in candidates.samples if name in self.only)[:limit]
        return Selection(names, dict.fromkeys(names, 1.0))

    def _choose(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        found = Selection()
        for at in self.steps or (step,):
            rest = _without(candidates, found.samples)
            covered = known.join(_only(candidates, found.samples))
            room = limit - len(found.samples)
            more = self._once(rest, covered, room, at, Counter(_guesses(candidates, found.samples)))
            found = _joined(found, more) if found.samples or found.weights else more
        return found

    def _once(
        self, candidates: Rows, known: Rows, limit: int, step: int, used: Mapping[int, int]
    ) -> Selection:
        if self.left is None:
            return self.selector.select(candidates, known, limit, step)
        left = {kind: count - used.get(kind, 0) for kind, count in self.left.items()}
        classes = candidates.logits.argmax(dim=1).tolist()
        open_places = [at for at, kind in enumerate(classes) if left.get(kind, 0) > 0]
        allowed = _at(candidates, open_places)
        if len(allowed) == 0:
            return Selection()
        return _within(self.selector.select(allowed, known, limit, step), allowed, left)


def _within(found: Selection, candidates: Rows, left: dict[int, int]) -> Selection:
    """The choice, best first, as far as the quotas go."""
    kept, dropped = [], set()
    guesses = _guesses(candidates, found.samples)
    for sample, kind in zip(found.samples, guesses, strict=True):
        if left[kind] > 0:
            left[kind] -= 1
            kept.append(sample)
        else:
            dropped.add(sample)
    weights = {name: each for name, each in found.weights.items() if name not in dropped}
    return Selection(tuple(kept), weights, found.clusters)


def _joined(first: Selection, later: Selection) -> Selection:
    # Known samples gained the weight of this batch in the first round; once is enough.
    new = {name: later.weights[name] for name in later.samples if name in later.weights}
    return Selection(first.samples + later.samples, {**first.weights, **new}, first.clusters)


def _guesses(rows: Rows, samples: Sequence[SampleId]) -> list[int]:
    places = {name: place for place, name in enumerate(rows.samples)}
    classes = rows.logits.argmax(dim=1).tolist() if len(rows) else []
    return [classes[places[name]] for name in samples]


def _without(rows: Rows, samples: Sequence[SampleId]) -> Rows:
    gone = set(samples)
    return _at(rows, [place for place, name in enumerate(rows.samples) if name not in gone])


def _only(rows: Rows, samples: Sequence[SampleId]) -> Rows:
    wanted = set(samples)
    return _at(rows, [place for place, name in enumerate(rows.samples) if name in wanted])


def _at(rows: Rows, places: Sequence[int]) -> Rows:
    at = torch.as_tensor(places, dtype=torch.long, device=rows.weights.device)
    names = tuple(rows.samples[place] for place in places)
    return Rows(names, rows.features[at], rows.logits[at], rows.weights[at])
