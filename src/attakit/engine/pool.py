"""Active domain adaptation: labels in rounds, chosen from a whole pool, without source data.

This is the stronger setting that the paper compares with (Gui, Li and Ji, ICLR 2024, section 5.3,
"Active Domain Adaptation"): everything unlabelled is there from the start and may be looked at
again and again. Nothing here is used on streams.

Deliberate differences from the public code: the images of the pool are never all in memory;
a sample that was skipped is not asked about again; a round without new labels trains nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from attakit.engine.loop import drain, learn
from attakit.engine.pool_learner import Pool, PoolLearner
from attakit.errors import SettingError, StateError, StreamError, check_count
from attakit.label.ledger import Ledger
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import NormPolicy
from attakit.protocols import Oracle, Selector
from attakit.queries import Query, SampleId
from attakit.randomness import generator
from attakit.records import Batch, Prediction, Rows, Step, StepResult, Training

_STATE = ("round", "asked", "learner", "oracle", "ledger")


@dataclass(frozen=True, slots=True)
class PoolResult:
    """What a pool run came to.

    Parameters
    ----------
    model
        The adapted copy of the caller's own model.
    labels
        The labels that were received.
    rounds
        One moment per round; its batch holds the samples that were asked about.
    """

    model: nn.Module
    labels: Mapping[SampleId, int]
    rounds: tuple[StepResult, ...]


class PoolAdaptation:
    """Look at the whole pool, ask, train; so many rounds.

    Each round may spend its equal share of the budget, rounded down, and the last one all that is
    left. Refunds of skipped questions are spent in the next round. Between two rounds, `state_dict`
    holds all that is needed to go on.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    samples
        The pool. Its features and logits are kept, its images are not.
    oracle
        Answers, at once or in later rounds.
    ledger
        Pays, from a budget with a limit.
    selector
        Chooses from the pool. A paced one should be "unlimited": the rounds are the pace here.
    rounds
        How often to ask and train.
    updates, lr, momentum, batch_size, norm, trainable
        Of the training in each round, see `PoolLearner`.
    forward_batch
        Samples per forward pass over the pool.
    seed
        Of the draws.

    Examples
    --------
    >>> from attakit.label import Budget, KnownLabels
    >>> from attakit.select import CLUE
    >>> from attakit.stream import ArraySamples
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> pool = ArraySamples(tiny_batch(size=20).inputs, [0, 1] * 10)
    >>> truth = dict(zip(pool.names, pool.labels))
    >>> selector = CLUE(first="unlimited", per_step="unlimited")
    >>> adaptation = PoolAdaptation(
    ...     tiny_classifier(), pool, KnownLabels(truth), Ledger(Budget(7)),
    ...     selector=selector, rounds=3, updates=5,
    ... )
    >>> result = adaptation.run()
    >>> [len(moment.batch) for moment in result.rounds], len(result.labels)
    ([2, 2, 3], 7)
    """

    def __init__(
        self,
        model: nn.Module,
        samples: Pool,
        oracle: Oracle,
        ledger: Ledger,
        *,
        selector: Selector,
        rounds: int = 10,
        updates: int = 1000,
        lr: float = 1e-3,
        momentum: float = 0.9,
        batch_size: int = 16,
        norm: NormPolicy = "frozen",
        trainable: str = "all",
        forward_batch: int = 100,
        seed: int = 0,
    ) -> None:
        check_count("PoolAdaptation", "rounds", rounds)
        check_count("PoolAdaptation", "forward_batch", forward_batch)
        _check_names(samples)
        self.limit = _limit(ledger)
        self.learner = PoolLearner(
            model,
            samples,
            updates=updates,
            lr=lr,
            momentum=momentum,
            batch_size=batch_size,
            norm=norm,
            trainable=trainable,
            seed=seed,
        )
        self.samples, self.oracle, self.ledger = samples, oracle, ledger
        self.selector = selector
        self.rounds = rounds
        self.forward_batch = forward_batch
        self.seed = seed
        self.round = 0
        self.seen: Rows | None = None  # the whole pool, as the last round saw it
        self._asked: dict[SampleId, None] = {}

    @property
    def is_finished(self) -> bool:
        """Whether all rounds are done."""
        return self.round >= self.rounds

    def run(
        self, *, wait: float = 0.0, progress: Callable[[StepResult], None] = lambda _moment: None
    ) -> PoolResult:
        """Do the rounds that are left.

        Parameters
        ----------
        wait
            Seconds to wait at the end for answers that are still to come.
        progress
            Called after every round.
        """
        moments = []
        while not self.is_finished:
            moments.append(self.run_round())
            progress(moments[-1])
        self.finish(wait=wait)
        return PoolResult(self.learner.adapted_model, self.learner.labels, tuple(moments))

    def run_round(self) -> StepResult:
        """Look at the pool, ask, take the answers that are there, and train on all labels."""
        if self.is_finished:
            raise SettingError(
                f"PoolAdaptation: all {self.rounds} rounds are done. Make a new one to go on."
            )
        count = self._due()
        batch, step, seconds = self._choose(count) if count else self._ask_nothing()
        result = learn(batch, step, seconds, self.learner, self.oracle, self.ledger)
        self.round += 1
        return result

    def finish(self, *, wait: float = 0.0) -> Training:
        """Take the answers that are still to come, then close and refund the other questions."""
        return drain(self.learner, self.oracle, self.ledger, wait=wait)

    def state_dict(self) -> dict[str, Any]:
        return {
            "round": self.round,
            "asked": list(self._asked),
            "learner": self.learner.state_dict(),
            "oracle": self.oracle.state_dict(),
            "ledger": self.ledger.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if set(state) != set(_STATE):
            raise StateError(
                f"PoolAdaptation: the saved state has {sorted(state)}, but {sorted(_STATE)} are "
                f"needed. Continue a run with the version that wrote it."
            )
        self.learner.load_state_dict(state["learner"])
        self.oracle.load_state_dict(state["oracle"])
        self.ledger.load_state_dict(state["ledger"])
        self.round = state["round"]
        self._asked = dict.fromkeys(SampleId(name) for name in state["asked"])

    def _due(self) -> int:
        """Labels that this round may ask for: its share, and refunds of earlier rounds."""
        share = self.limit // self.rounds
        target = self.limit if self.round == self.rounds - 1 else share * (self.round + 1)
        return max(0, target - self.ledger.budget.spent)

    def _choose(self, count: int) -> tuple[Batch, Step, float]:
        self.seen, seconds = self._look()
        began = time.perf_counter()
        places = [p for p, name in enumerate(self.seen.samples) if name not in self._asked]
        candidates = _take(self.seen, places)
        known = _take(self.seen, self._covered(self.seen))
        chosen = self.selector.select(candidates, known, count, self.round).samples
        names = tuple(dict.fromkeys(chosen))  # a selector may repeat itself
        entropy = float(softmax_entropy(self.seen.logits).mean())
        seconds += time.perf_counter() - began
        self._asked |= dict.fromkeys(names)
        if not names:
            return (*self._ask_nothing()[:2], seconds)
        self.learner.fetch(names)
        place = {name: row for row, name in enumerate(self.seen.samples)}
        rows = _take(self.seen, [place[name] for name in names])
        numbers = {"candidates": float(len(candidates)), "pool_entropy": entropy}
        queries = tuple(Query(name, self.round) for name in names)
        step = Step(Prediction(rows.logits, rows.features), queries, numbers)
        return Batch(self.round, names, self.learner.images(names)), step, seconds

    def _look(self) -> tuple[Rows, float]:
        """Features and logits of the whole pool, and the seconds that the model took for them."""
        # Shuffled: a batch of one domain or class would spoil the statistics of the batch.
        order = generator(self.seed, "pool order").permutation(len(self.samples))
        parts, seconds = [], 0.0
        for places in np.array_split(order, -(-len(order) // self.forward_batch)):
            inputs = self.samples.load(places.tolist())
            began = time.perf_counter()
            parts.append(self.learner.predict(inputs))
            seconds += time.perf_counter() - began
        back = torch.from_numpy(order.argsort()).to(parts[0].logits.device)
        features = torch.cat([part.features for part in parts])[back]
        logits = torch.cat([part.logits for part in parts])[back]
        ones = torch.ones(len(order), device=logits.device)
        return Rows(tuple(self.samples.names), features, logits, ones), seconds

    def _covered(self, seen: Rows) -> list[int]:
        """Where the samples are that have a label or wait for one."""
        names = {*self.learner.labels, *(query.sample for query in self.ledger.open)}
        return [place for place, name in enumerate(seen.samples) if name in names]

    def _ask_nothing(self) -> tuple[Batch, Step, float]:
        nobody = self.samples.load([0])[:0]
        return Batch(self.round, (), nobody), Step(self.learner.predict(nobody)), 0.0


def _take(rows: Rows, places: list[int]) -> Rows:
    at = torch.tensor(places, dtype=torch.long, device=rows.logits.device)
    names = tuple(rows.samples[place] for place in places)
    return Rows(names, rows.features[at], rows.logits[at], rows.weights[at])


def _limit(ledger: Ledger) -> int:
    if ledger.budget.limit is None:
        raise SettingError(
            "PoolAdaptation: the budget must have a limit, because the rounds share it, got none. "
            "Give a number of labels."
        )
    return ledger.budget.limit


def _check_names(samples: Pool) -> None:
    if len(samples) == 0:
        raise StreamError("PoolAdaptation: the pool must hold samples, got none.")
    if len(set(samples.names)) < len(samples):
        raise StreamError(
            "PoolAdaptation: every sample of the pool needs a name of its own, but some appear "
            "twice. Put the domain in front of the names."
        )
