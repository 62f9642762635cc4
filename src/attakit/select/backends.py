"""Who computes K-means."""

from __future__ import annotations

from attakit.errors import check_choice
from attakit.select.kmeans import Clustering, SklearnKMeans
from attakit.select.torch_kmeans import TorchKMeans

BACKENDS = ("sklearn", "torch")


def build_clustering(
    who: str,
    kmeans: str,
    *,
    inits: int,
    algorithm: str = "lloyd",
    weighted_seeding: bool = True,
    seeding_power: int = 2,
) -> Clustering:
    """K-means by the name of its backend; settings of the other one are checked all the same.

    >>> type(build_clustering("CLUE", "torch", inits=1)).__name__
    'TorchKMeans'
    """
    check_choice(who, "kmeans", kmeans, BACKENDS)
    on_cpu = SklearnKMeans(inits=inits, algorithm=algorithm, weighted_seeding=weighted_seeding)
    on_device = TorchKMeans(
        inits=inits, weighted_seeding=weighted_seeding, seeding_power=seeding_power
    )
    return on_cpu if kmeans == "sklearn" else on_device
