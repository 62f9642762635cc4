"""CLUE: clusters in which uncertain samples weigh more.

Prabhu, Chandrasekaran, Saenko and Hoffman, "Active domain adaptation via clustering
uncertainty-weighted embeddings", ICCV 2021, section 3. https://arxiv.org/abs/2010.08666

This is only the choice of samples; the paper's training on source data (MME) is not included.

Differences from the public code: if two centroids share a nearest sample, the second gets its own
next nearest. The public code adds second nearest samples of the first clusters. No 1e-8 is added to
probabilities, which changes weights by about 1e-6. The least sure cluster comes first, while the
public code returns a set. K-means starts three times instead of ten.
"""

from __future__ import annotations

from torch import Tensor

from attakit.errors import check_range
from attakit.nn.entropy import softmax_entropy
from attakit.randomness import derived_seed
from attakit.records import Rows, Selection
from attakit.select.centres import choose_centres
from attakit.select.finite import check_finite
from attakit.select.small_kmeans import SmallKMeans


class CLUE:
    """Asks about the samples nearest the centroids of clusters weighted by entropy.

    K-means minimises Σ_k Σ_{x in cluster k} H(x)·|φ(x) - μ_k|². H(x) is the entropy of
    softmax(logits / temperature) and φ(x) the features, so centroids move towards uncertain
    samples. There is one cluster per question. A sample that is nearest two centroids is asked
    about once, and the next nearest takes its second place. Every weight is 1.

    Parameters
    ----------
    temperature
        Temperature of the softmax. Above 1, sample weights become more equal (diversity). Below 1,
        uncertain samples weigh more (uncertainty). The paper uses 1 for digits and 0.1 for
        DomainNet.
    inits
        Number of K-means starts; the best one counts.
    seed
        Seed of K-means.

    Examples
    --------
    >>> import torch
    >>> features = torch.tensor([[0.0], [1.0], [2.0]])
    >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0], [0.0, 0.0]])
    >>> candidates = Rows(("sure", "sure too", "unsure"), features, logits, torch.ones(3))
    >>> nothing = Rows((), torch.zeros(0, 1), torch.zeros(0, 2), torch.zeros(0))
    >>> CLUE().select(candidates, nothing, limit=1, step=0).samples
    ('unsure',)
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        inits: int = 3,
        seed: int = 0,
    ) -> None:
        check_range("CLUE", "temperature", temperature, above=0)
        self.temperature = temperature
        self.clustering = SmallKMeans(inits=inits)
        self.seed = seed

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, starting with the least sure cluster."""
        weights = self.uncertainty(candidates.logits)
        check_finite("CLUE", "logits", weights)
        seed = derived_seed(self.seed, "clue", step)
        return choose_centres(candidates, known, weights, self.clustering, limit, seed)

    def uncertainty(self, logits: Tensor) -> Tensor:
        """Return the weight of every sample: the entropy of its softened prediction."""
        return softmax_entropy(logits.float() / self.temperature)
