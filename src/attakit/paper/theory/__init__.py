"""The paper's theory in numbers: bounds, optimal weights, and divergences of samples."""

from attakit.paper.theory.bounds import (
    domain_bound,
    gain_from_labels,
    gain_from_source_like,
    two_set_source_bound,
    weighted_error_margin,
)
from attakit.paper.theory.divergence import Divergence, estimate_divergence
from attakit.paper.theory.terms import (
    divergence_slack,
    divergence_tail,
    divergence_term,
    empirical_margin,
    gap_term,
    hoeffding_tail,
    joint_error,
    variance_factor,
    weighted_error_tail,
)
from attakit.train.optimal_weight import optimal_low_weight, source_bound, target_bound

__all__ = [
    "Divergence",
    "divergence_slack",
    "divergence_tail",
    "divergence_term",
    "domain_bound",
    "empirical_margin",
    "estimate_divergence",
    "gain_from_labels",
    "gain_from_source_like",
    "gap_term",
    "hoeffding_tail",
    "joint_error",
    "optimal_low_weight",
    "source_bound",
    "target_bound",
    "two_set_source_bound",
    "variance_factor",
    "weighted_error_margin",
    "weighted_error_tail",
]
