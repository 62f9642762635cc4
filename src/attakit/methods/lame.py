"""LAME: correct the answers to a batch so that similar samples agree; the model stays fixed.

Boudiaf, Mueller, Ben Ayed and Bertinetto, "Parameter-free online test-time adaptation", CVPR 2022,
section 4 (objective in equation 2, its fixed-point iteration in equation 6).
https://arxiv.org/abs/2201.05718

Written from the paper alone. Differences from the public code: probabilities are used unchanged,
while that code adds 1e-10 to each before the logarithm. The answer holds logits whose softmax is
the corrected answer. As in that code, and unlike the paper's objective, the neighbour relation need
not be symmetric.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attakit.errors import check_choice, check_count, check_range
from attakit.methods.windowed import WindowedMethod
from attakit.records import Prediction

Affinity = Literal["knn", "rbf", "linear"]
MAX_ROUNDS = 100
TOLERANCE = 1e-8  # relative change of the objective at which the iteration ends


class LAME(WindowedMethod):
    """Moves the answers to a batch towards agreement among similar samples; learns nothing.

    It helps if samples of one class come in a row, and hurts if classes are well mixed. A single
    sample is answered by the source model, unless there is a window.

    Parameters
    ----------
    model
        Classifier to use; it is copied.
    affinity
        Similarity of two samples, by their features of length 1. "knn": 1 for the nearest
        neighbours, else 0. "rbf": a Gaussian of the distance, as wide as the distance between
        nearest neighbours. "linear": the cosine.
    neighbours
        k: the number of neighbours that count, or set the width of the Gaussian.
    strength
        Weight of the agreement among neighbours. The paper has 1; 0 changes no answers.
    window
        Minimum number of samples per pass. Smaller batches are filled up with earlier samples. 0
        uses batches as they come.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> LAME(tiny_classifier()).step(tiny_batch(), Allowance(0)).prediction.logits.shape
    torch.Size([8, 3])
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        affinity: Affinity = "rbf",
        neighbours: int = 5,
        strength: float = 1.0,
        window: int = 0,
    ) -> None:
        super().__init__(model, window=window)
        check_choice("LAME", "affinity", affinity, get_args(Affinity))
        check_count("LAME", "neighbours", neighbours)
        check_range("LAME", "strength", strength, at_least=0)
        self.affinity: Affinity = affinity
        self.neighbours = neighbours
        self.strength = strength

    def look(self, inputs: Tensor) -> Prediction:
        plain = super().look(inputs)
        if len(inputs) < 2:
            return plain
        kernel = self.strength * affinities(plain.features, self.affinity, self.neighbours)
        return Prediction(agree(plain.logits.log_softmax(dim=1), kernel), plain.features)


def affinities(features: Tensor, affinity: Affinity, neighbours: int) -> Tensor:
    """Return how similar every sample is to every other one.

    >>> affinities(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), "knn", 1)[:2]
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    features = F.normalize(features, dim=1)
    if affinity == "linear":
        return features @ features.T
    distances = torch.cdist(features, features)
    if affinity == "rbf":
        # Each sample counts as its own nearest neighbour here, at distance 0, as in the code.
        nearest = distances.topk(min(neighbours, len(features)), dim=1, largest=False).values
        width = nearest[:, -1].mean().clamp_min(torch.finfo(features.dtype).tiny ** 0.5)
        return torch.exp(-0.5 * (distances / width).square())
    distances.fill_diagonal_(torch.inf)
    places = distances.topk(min(neighbours, len(features) - 1), dim=1, largest=False).indices
    return torch.zeros_like(distances).scatter_(1, places, 1.0)


def agree(log_chances: Tensor, kernel: Tensor) -> Tensor:
    """Iterate z ← softmax(log q + W z) from z = q; return the logarithms before the last softmax.

    >>> sure, unsure = [0.9, 0.1], [0.4, 0.6]
    >>> agree(torch.tensor([sure, unsure]).log(), torch.ones(2, 2)).argmax(dim=1)
    tensor([0, 0])
    """
    logits, before = log_chances, math.nan
    for _ in range(MAX_ROUNDS):
        chances = logits.softmax(dim=1)
        pull = kernel @ chances
        logits = log_chances + pull
        objective = _objective(logits.log_softmax(dim=1), log_chances, pull)
        if abs(objective - before) <= TOLERANCE * abs(before):
            break
        before = objective
    return logits


def _objective(logs: Tensor, log_chances: Tensor, pull: Tensor) -> float:
    """Return Σ KL(z ‖ q) - Σ w z·z', with z' of the previous round."""
    lowest = torch.finfo(logs.dtype).min
    terms = logs.clamp_min(lowest) - log_chances.clamp_min(lowest) - pull
    return (logs.exp() * terms).sum().item()
