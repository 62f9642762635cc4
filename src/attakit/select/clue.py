"""CLUE: clusters in which unsure samples weigh more.

Prabhu, Chandrasekaran, Saenko and Hoffman, "Active domain adaptation via clustering
uncertainty-weighted embeddings", ICCV 2021, section 3. https://arxiv.org/abs/2010.08666

Only the choice of samples; the paper's training on source data (MME) is not part of it.

Differs from the public code: where two centroids share a nearest sample, the second gets its own
next nearest, while the public code fills up with second nearest samples of the first clusters; no
1e-8 is added to probabilities, which changes weights by about 1e-6; and the least sure cluster
comes first, while the public code returns a set. K-means starts three times instead of ten.
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
    """Ask about the samples nearest the centroids of clusters weighted by entropy.

    K-means minimises Σ_k Σ_{x in cluster k} H(x)·|φ(x) - μ_k|², where H(x) is the entropy of
    softmax(logits / temperature) and φ(x) the features, so that centroids move to where samples
    are unsure. As many clusters as questions; a sample that is nearest two centroids is asked
    about once, and the next nearest takes its second place. Every weight is 1.

    Parameters
    ----------
    temperature
        Of the softmax: above 1 samples weigh more alike (diversity), below 1 unsure ones
        outweigh the others more (uncertainty). The paper takes 1 for digits, 0.1 for DomainNet.
    inits
        Starts of K-means; the best one counts.
    seed
        Of K-means.

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
        """Choose at most `limit` candidates, that of the least sure cluster first."""
        weights = self.uncertainty(candidates.logits)
        check_finite("CLUE", "logits", weights)
        seed = derived_seed(self.seed, "clue", step)
        return choose_centres(candidates, known, weights, self.clustering, limit, seed)

    def uncertainty(self, logits: Tensor) -> Tensor:
        """The weight of every sample: the entropy of its softened prediction."""
        return softmax_entropy(logits.float() / self.temperature)
