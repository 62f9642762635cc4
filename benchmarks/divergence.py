"""Measure the time and the error of estimates of the HΔH-distance, where it is known.

    python benchmarks/divergence.py                    # 10,000 × 512 on either side
    python benchmarks/divergence.py --rows 1000 --columns 64

Three pairs of samples: drawn from one distribution (distance 0), shifted a little along one
direction (the distance is known), and far apart (distance 2). Sides above 2,000 rows are thinned
to 2,000, so time hardly grows beyond that.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from attakit.paper.theory import estimate_divergence


def total_variation(shift: float) -> float:
    """Twice the total variation of two shifted unit normals: what a linear class can see."""
    return 2 * math.erf(shift / (2 * math.sqrt(2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=512)
    parser.add_argument("--hypotheses", nargs="+", default=["linear", "network"])
    options = parser.parse_args()
    random = np.random.default_rng(0)
    first = random.normal(size=(options.rows, options.columns))
    print("| hypotheses | shift | known distance | estimate | CPU seconds |")
    print("|---|---:|---:|---|---:|")
    for hypotheses in options.hypotheses:
        for shift in (0.0, 1.0, 8.0):
            second = random.normal(size=first.shape)
            second[:, 0] += shift
            began = time.process_time()
            found = estimate_divergence(first, second, hypotheses=hypotheses)
            seconds = time.process_time() - began
            known = total_variation(shift)
            print(
                f"| {hypotheses} | {shift:g} | {known:.2f} | {found} | {seconds:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
