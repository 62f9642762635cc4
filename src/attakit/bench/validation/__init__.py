"""The paper's validation experiments: loss surfaces, entropy sets, incremental clustering."""

from attakit.bench.validation.clustering_steps import ClusteringSettings, follow_clustering
from attakit.bench.validation.entropy_sets import EntropySettings, compare_entropy_sets
from attakit.bench.validation.fitting import Fitting
from attakit.bench.validation.surfaces import PLANS, SurfaceSettings, compute_surfaces
from attakit.bench.validation.testbed import USUAL, Testbed, load_material

__all__ = [
    "PLANS",
    "USUAL",
    "ClusteringSettings",
    "EntropySettings",
    "Fitting",
    "SurfaceSettings",
    "Testbed",
    "compare_entropy_sets",
    "compute_surfaces",
    "follow_clustering",
    "load_material",
]
