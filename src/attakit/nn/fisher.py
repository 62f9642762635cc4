"""How much each parameter matters to a model, and a penalty for changing it.

Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS 2017, as used by
Niu et al., "Efficient test-time model adaptation without forgetting", ICML 2022 (the part on
anti-forgetting with Fisher regularisation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attakit.nn.classifier import Classifier
from attakit.nn.devices import place


def diagonal_fisher(
    model: Classifier, parameters: Sequence[nn.Parameter], inputs: Tensor, *, batch_size: int = 64
) -> list[Tensor]:
    """Estimate the diagonal of the Fisher information, one tensor per parameter.

    F is the mean over batches of (∂L/∂θ)². L is the mean cross-entropy of a batch against the
    model's own answers (Niu et al. 2022; batches instead of samples, as in their code).

    Parameters
    ----------
    model
        The model, with its current norm statistics.
    parameters
        The parameters to estimate it for. They must require gradients.
    inputs
        Data of the world whose knowledge should be kept: the source.
    batch_size
        Samples per gradient.

    Examples
    --------
    >>> classifier = Classifier(nn.Linear(2, 3))
    >>> fisher = diagonal_fisher(classifier, list(classifier.parameters()), torch.ones(5, 2))
    >>> [tuple(each.shape) for each in fisher]
    [(3, 2), (3,)]
    """
    total = [torch.zeros_like(parameter) for parameter in parameters]
    batches = torch.split(inputs, batch_size)
    for batch in batches:
        logits = model(place(batch, model.device)).logits
        loss = F.cross_entropy(logits, logits.argmax(dim=1))
        gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
        for each, gradient in zip(total, gradients, strict=True):
            each.addcmul_(gradient, gradient, value=1 / len(batches))
    return total


class FisherPenalty:
    """Σ F (θ - θ₀)²: how far parameters that matter have moved (Niu et al. 2022).

    Parameters
    ----------
    parameters
        θ. Their current values are θ₀.
    fisher
        F, one tensor per parameter; empty for no penalty.

    Examples
    --------
    >>> weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    >>> penalty = FisherPenalty([weight], [torch.tensor([3.0, 5.0])])
    >>> _ = weight.data.add_(2)
    >>> penalty().item()
    32.0
    """

    def __init__(self, parameters: Sequence[nn.Parameter], fisher: Sequence[Tensor]) -> None:
        self.parameters = list(parameters) if fisher else []
        self.fisher = list(fisher)
        self.origin = [parameter.detach().clone() for parameter in self.parameters]

    def __len__(self) -> int:
        return len(self.fisher)

    def __call__(self) -> Tensor:
        parts = zip(self.fisher, self.parameters, self.origin, strict=True)
        terms = [(fisher * (now - before).square()).sum() for fisher, now, before in parts]
        return torch.stack(terms).sum() if terms else torch.zeros(())

    def state_dict(self) -> dict[str, Any]:
        return {"fisher": self.fisher, "origin": self.origin}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, own in (("fisher", self.fisher), ("origin", self.origin)):
            shapes = [tuple(each.shape) for each in own]
            given = [tuple(each.shape) for each in state[name]]
            if given != shapes:
                raise ValueError(f"{name} has shapes {given} instead of {shapes}")
        for name in ("fisher", "origin"):
            for own, saved in zip(getattr(self, name), state[name], strict=True):
                own.copy_(saved)
