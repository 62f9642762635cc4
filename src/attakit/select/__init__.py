"""Which samples deserve a label."""

from __future__ import annotations

from typing import Any

from attakit.select.incremental import IncrementalClustering
from attakit.select.kmeans import Clustering, Partition, SklearnKMeans
from attakit.select.torch_kmeans import TorchKMeans
from attakit.select.uncertainty import HighestEntropy
from attakit.select.uniform import Uniform

SELECTORS: dict[str, type[Any]] = {
    "entropy": HighestEntropy,
    "incremental": IncrementalClustering,
    "uniform": Uniform,
}

__all__ = [
    "SELECTORS",
    "Clustering",
    "HighestEntropy",
    "IncrementalClustering",
    "Partition",
    "SklearnKMeans",
    "TorchKMeans",
    "Uniform",
]
