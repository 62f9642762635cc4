"""How much of the source's batch-norm statistics to keep: fixed, or found on first samples."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from attakit.nn.entropy import softmax_entropy
from attakit.nn.shapes import as_logits
from attakit.queries import Answer, SampleId
from attakit.targets import Targets

SHARES = (0.25, 0.45, 0.65, 0.8)  # each costs a pass over its test samples
# Without convolutions a sample gives one value per channel, so statistics follow the class mix.
# Then the source's statistics alone may be best.
ROW_SHARES = (0.25, 0.5, 0.75, 1.0)
_SAMPLES = 32  # samples to try every share on
_FEWEST = 16  # samples before a share is chosen
_LABELS = 16  # maximum number of labelled samples to try every share on
_ENOUGH = 8  # this many of them end the search
_SURENESS = 0.2  # weight of the mean entropy against the entropy of the mean answer
_WORTH = 48  # number of labelled samples that the unlabelled ones are worth
_TELLING = 0.25  # share of the possible information that answers should have at least
_VAGUE = 4.0  # nats that a share loses if its answers have an e-th of that
_CLEAR = 6.0  # nats by which labels must prefer another share: a change unsettles old anchors
_HARMLESS = 16.0  # nats that the source's statistics are ahead: mixing must earn its place
_SMALLEST = 1e-9

_SAVED = ("chosen", "seen", "answers", "entropies", "held", "learned")


class Trial(Protocol):
    """Statistics with one share, to run a model with."""

    def attach(self, model: nn.Module) -> None: ...

    def keep(self, samples: Sequence[SampleId] = ()) -> None: ...

    def shorten(self, samples: int) -> None: ...


class FixedShare(nn.Module):
    """A fixed share. It has the interface of `ShareSearch`, but does not search."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value
        self.is_trying = False

    def look(self, model: nn.Module, inputs: Tensor) -> bool:
        del model, inputs
        return False

    def keep(self) -> None:
        return

    def hold(self, model: nn.Module, samples: Sequence[SampleId], inputs: Tensor) -> bool:
        del model, samples, inputs
        return False

    def learn(self, answers: Sequence[Answer]) -> None:
        del answers

    def restart(self) -> None:
        return

    def forget(self, samples: Collection[SampleId]) -> None:
        del samples


class ShareSearch(nn.Module):
    """Tries shares on the first samples of a domain, and then on labelled ones.

    A good share gives answers that are spread over the classes, and each of them sure. Its score is
    the entropy of the mean answer minus a part of the mean entropy. Labels add their
    log-likelihood, and change the choice if they clearly prefer another share. After some samples
    and labels the search ends, and costs nothing more.

    Parameters
    ----------
    trials
        Statistics of one model, with each of the shares.
    shares
        Shares to try: `SHARES`, or `ROW_SHARES` for a model without convolutions.
    first
        The share until enough samples have been seen.
    """

    seen: int
    answers: Tensor  # (shares, classes): sums of probabilities
    entropies: Tensor  # (shares,): sums
    held: dict[SampleId, Tensor]  # (shares, classes): log-probabilities until a label comes
    learned: dict[SampleId, Tensor]  # (shares,): log-likelihoods of labels

    def __init__(
        self, trials: Sequence[nn.Module], first: float, shares: Sequence[float] = SHARES
    ) -> None:
        super().__init__()
        self.shares = tuple(shares)
        self.trials = nn.ModuleList(trials)
        self.chosen = first
        self._reset()
        self._latest: tuple[int, Tensor, Tensor, float] | None = None  # a pass, until it is kept
        self.is_trying = False  # True if the current pass is a trial

    @property
    def value(self) -> float:
        """The current share."""
        return self.chosen if self._latest is None else self._latest[3]

    def look(self, model: nn.Module, inputs: Tensor) -> bool:
        """Before a pass, try the shares on some of its samples.

        Returns True if it did. The model then has the statistics of a trial.
        """
        if self.is_trying:
            return False
        self._latest = None
        count = min(len(inputs), _SAMPLES - self.seen)
        if count <= 0 or torch.is_grad_enabled():
            return False
        logits = self._run(model, inputs[:count])
        answers = logits.softmax(dim=2).sum(dim=1).cpu()
        entropies = (
            softmax_entropy(logits.flatten(0, 1)).view(len(self.shares), -1).sum(dim=1).cpu()
        )
        if self.seen:
            answers, entropies = answers + self.answers, entropies + self.entropies
        seen = self.seen + count
        self._latest = seen, answers, entropies, self._best(seen, answers, entropies)
        return True

    def keep(self) -> None:
        """Store the samples of the last look."""
        if self._latest is not None:
            self.seen, self.answers, self.entropies, self.chosen = self._latest
            self._latest = None
            for trial in self._trials():
                trial.keep()

    def hold(self, model: nn.Module, samples: Sequence[SampleId], inputs: Tensor) -> bool:
        """Try the shares on samples in question, until their labels arrive.

        Returns True if it did, like `look`.
        """
        room = _LABELS - len(self.learned) - len(self.held)
        if room <= _LABELS - _ENOUGH or not samples:
            return False
        logs = self._run(model, inputs[:room]).log_softmax(dim=2).cpu()
        for place, sample in enumerate(samples[:room]):
            self.held[sample] = logs[:, place]
        return True

    def learn(self, answers: Sequence[Answer]) -> None:
        """Let the labels of held samples count."""
        for answer in answers:
            logs = self.held.pop(answer.query.sample, None)
            if logs is not None and answer.teaches(logs.shape[1]):
                self.learned[answer.query.sample] = _likelihood(logs, answer)
                self.chosen = self._best(self.seen, self.answers, self.entropies)

    def restart(self) -> None:
        """Search again from the next samples on, because a new domain has begun."""
        self._reset()
        for trial in self._trials():
            trial.shorten(0)

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove asked samples and their labels, as if they had not been asked about."""
        for sample in samples:
            self.held.pop(sample, None)
            self.learned.pop(sample, None)
        self.chosen = self._best(self.seen, self.answers, self.entropies)

    def get_extra_state(self) -> dict[str, Any]:
        return {name: copy(getattr(self, name)) for name in _SAVED}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        for name in _SAVED:
            setattr(self, name, state[name])

    def _reset(self) -> None:
        self.seen = 0
        self.answers = torch.zeros(len(self.shares), 0)
        self.entropies = torch.zeros(len(self.shares))
        self.held = {}
        self.learned = {}

    def _best(self, seen: int, answers: Tensor, entropies: Tensor) -> float:
        if seen < _FEWEST:
            return self.chosen
        balance = softmax_entropy((answers / seen).clamp(min=_SMALLEST).log())
        entropy = entropies / seen
        scores = _WORTH * (balance - _SURENESS * entropy)
        if 1.0 in self.shares:
            scores[self.shares.index(1.0)] += _HARMLESS
        else:
            enough = _TELLING * math.log(min(seen, answers.shape[1]))
            information = (balance - entropy).clamp(min=_SMALLEST)
            scores = scores + _VAGUE * (information / enough).log().clamp(max=0)
        scores = scores.nan_to_num(nan=-torch.inf)
        unlabelled = int(scores.argmax())
        for logs in self.learned.values():
            scores = scores + logs
        best = int(scores.argmax())
        return self.shares[best if scores[best] - scores[unlabelled] > _CLEAR else unlabelled]

    def _run(self, model: nn.Module, inputs: Tensor) -> Tensor:
        """Logits with every share: (shares, samples, classes)."""
        found = []
        self.is_trying = True
        try:
            with torch.no_grad():
                for trial in self._trials():
                    trial.attach(model)
                    found.append(as_logits(model(inputs), len(inputs)).float())
        finally:
            self.is_trying = False
        return torch.stack(found)

    def _trials(self) -> Iterator[Trial]:
        yield from self.trials  # type: ignore[misc]


def _likelihood(logs: Tensor, answer: Answer) -> Tensor:
    """The log-likelihood of an answer, from log-probabilities with every share."""
    if answer.is_plain and answer.label is not None:
        return logs[:, answer.label]
    targets = Targets.of_answers([answer] * len(logs), logs.shape[1]).to(logs)
    return -targets.weights * targets.losses(logs)
