"""Several answers to each sample, weighed by how well they predicted the labels that came later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attakit.queries import Answer, SampleId
from attakit.targets import Targets

_LATEST = 64  # labels that count
_FLOOR = 0.2  # smaller probabilities are raised to this


class Experts:
    """Averages answers by the likelihood of the latest labels.

    Experts are judged by what they said before a label was known. Small probabilities are raised
    for that, because some experts are too sure. Where none is raised, the log-loss of the average
    exceeds that of any expert by at most log(1 / its prior) over these labels.

    Parameters
    ----------
    prior
        Weight of each expert before there are labels.
    other_prior
        The weights in another situation, for which `average` gets a probability; None if there is
        only one.

    Examples
    --------
    >>> from attakit.queries import Query
    >>> experts, answers = Experts((0.8, 0.2)), torch.tensor([[[0.2, 0.8]], [[0.8, 0.2]]])
    >>> experts.hold(["a"], answers)
    >>> experts.learn([Answer(Query("a", 0), 0, "me")])
    >>> experts.weights()
    tensor([0.5000, 0.5000])
    """

    def __init__(self, prior: Sequence[float], other_prior: Sequence[float] | None = None) -> None:
        self.prior = torch.tensor(prior)
        self.other_prior = self.prior if other_prior is None else torch.tensor(other_prior)
        self.held: dict[SampleId, Tensor] = {}  # (experts, classes): logarithms, until a label
        self.learned: dict[SampleId, Tensor] = {}  # (experts,): log-likelihoods, oldest first

    def weights(self, other: float = 0.0) -> Tensor:
        """Return the weight of each expert. `other` is the probability of the other situation."""
        latest = list(self.learned.values())[-_LATEST:]
        prior = self.prior.lerp(self.other_prior, other)
        return torch.stack([prior.log(), *latest]).sum(dim=0).softmax(dim=0)

    def average(self, answers: Tensor, other: float = 0.0) -> Tensor:
        """Return the weighted mean of probabilities (experts, samples, classes)."""
        return torch.einsum("e,esc->sc", self.weights(other).to(answers), answers)

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
        return {"held": _packed(self.held), "learned": _packed(self.learned)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.held, self.learned = (_unpacked(state[name]) for name in ("held", "learned"))


def _packed(rows: Mapping[SampleId, Tensor]) -> tuple[list[str], Tensor]:
    """Pack all samples into one tensor. With one tensor each, the names would take more space."""
    return list(map(str, rows)), torch.stack([*rows.values()]) if rows else torch.zeros(0)


def _unpacked(packed: tuple[Sequence[str], Tensor]) -> dict[SampleId, Tensor]:
    return {SampleId(name): row for name, row in zip(*packed, strict=True)}
