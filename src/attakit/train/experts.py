"""Several answers to each sample, weighed by how well they foretold the labels that came later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attakit.queries import Answer, SampleId
from attakit.targets import Targets

_LATEST = 64  # labels that count
_TRUST = 0.5  # people are asked about unsure samples, which are no fair sample of the stream
_FLOOR = 0.01  # no expert is blamed for a smaller probability


class Experts:
    """Averages answers by the likelihood of the latest labels.

    Experts are judged by what they said before a label was known. Over these labels, the log-loss
    of the average exceeds that of any expert by at most 2 log(1 / its prior) in all.

    Parameters
    ----------
    prior
        Weight of each expert before there are labels.

    Examples
    --------
    >>> experts = Experts((0.75, 0.25))
    >>> experts.average(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])).tolist()
    [[0.75, 0.25]]
    """

    def __init__(self, prior: Sequence[float]) -> None:
        self.prior = torch.tensor(prior)
        self.held: dict[SampleId, Tensor] = {}  # (experts, classes): logarithms, until a label
        self.learned: dict[SampleId, Tensor] = {}  # (experts,): log-likelihoods, oldest first

    @property
    def weights(self) -> Tensor:
        """The current weight of each expert."""
        latest = list(self.learned.values())[-_LATEST:]
        known = torch.stack([torch.zeros_like(self.prior), *latest])
        return (self.prior.log() + _TRUST * known.sum(dim=0)).softmax(dim=0)

    def average(self, answers: Tensor) -> Tensor:
        """Return the weighted mean of probabilities (experts, samples, classes)."""
        return torch.einsum("e,esc->sc", self.weights.to(answers), answers)

    def hold(self, samples: Sequence[SampleId], answers: Tensor) -> None:
        """Remember what each expert says about samples in question: (experts, samples, classes)."""
        logs = answers.clamp(min=_FLOOR).log().cpu()
        self.held.update({sample: logs[:, place] for place, sample in enumerate(samples)})

    def learn(self, answers: Sequence[Answer]) -> None:
        """Judge the experts by the labels of held samples."""
        for answer in answers:
            logs = self.held.pop(answer.query.sample, None)
            if logs is not None and answer.teaches(logs.shape[1]):
                targets = Targets.of_answers([answer] * len(logs), logs.shape[1]).to(logs)
                self.learned[answer.query.sample] = -targets.weights * targets.losses(logs)

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove samples, as if they had not been asked about."""
        for sample in samples:
            self.held.pop(sample, None)
            self.learned.pop(sample, None)

    def state_dict(self) -> dict[str, Any]:
        return {"held": dict(self.held), "learned": dict(self.learned)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.held, self.learned = dict(state["held"]), dict(state["learned"])
