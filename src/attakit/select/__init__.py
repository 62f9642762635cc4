"""Selectors: they decide which samples deserve a label."""

from __future__ import annotations

from typing import Any

from attakit.select.badge import BADGE
from attakit.select.centres import ClusterCentres
from attakit.select.clue import CLUE
from attakit.select.incremental import IncrementalClustering
from attakit.select.k_centre import KCentre
from attakit.select.k_margin import KMargin
from attakit.select.kmeans import Clustering, Partition, SklearnKMeans
from attakit.select.label_rate import LabelRate
from attakit.select.margin import SmallestMargin
from attakit.select.uncertainty import HighestEntropy
from attakit.select.uniform import Uniform

SELECTORS: dict[str, type[Any]] = {
    "badge": BADGE,
    "clue": CLUE,
    "entropy": HighestEntropy,
    "incremental": IncrementalClustering,
    "k_centre": KCentre,
    "k_margin": KMargin,
    "kmeans": ClusterCentres,
    "margin": SmallestMargin,
    "uniform": Uniform,
}

__all__ = [
    "BADGE",
    "CLUE",
    "SELECTORS",
    "ClusterCentres",
    "Clustering",
    "HighestEntropy",
    "IncrementalClustering",
    "KCentre",
    "KMargin",
    "LabelRate",
    "Partition",
    "SklearnKMeans",
    "SmallestMargin",
    "Uniform",
]
