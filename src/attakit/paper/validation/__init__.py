"""The paper's validation experiments: loss surfaces, entropy sets, incremental clustering."""

from attakit.paper.validation.clustering_steps import ClusteringSettings, follow_clustering
from attakit.paper.validation.entropy_cells import EntropySettings, compare_entropy_sets
from attakit.paper.validation.fitting import Fitting
from attakit.paper.validation.surface_cells import PLANS, SurfaceSettings, compute_surfaces
from attakit.paper.validation.testbed import DATA_DEFAULTS, Testbed, load_testbed

__all__ = [
    "DATA_DEFAULTS",
    "PLANS",
    "ClusteringSettings",
    "EntropySettings",
    "Fitting",
    "SurfaceSettings",
    "Testbed",
    "compare_entropy_sets",
    "compute_surfaces",
    "follow_clustering",
    "load_testbed",
]
