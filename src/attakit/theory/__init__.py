"""What the paper proves, in numbers: the bound on the target error and its best weight."""

from attakit.theory.weights import optimal_low_weight, target_bound

__all__ = ["optimal_low_weight", "target_bound"]
