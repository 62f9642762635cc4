"""Two-dimensional blobs that drift: small enough to compute by hand, for tests and docs."""

from __future__ import annotations

import numpy as np

from attakit.randomness import generator
from attakit.stream.samples import Domains

_CLASSES = ("red", "green", "blue")
_SAMPLES = 200
_SPREAD = 0.45
_RADIUS = 2.0
# Rotation of the blobs around the origin, in degrees, and the shift of the origin.
_DRIFTS = {"near": (0, (0.0, 0.0)), "turned": (45, (0.5, 0.0)), "far": (80, (1.0, -1.0))}


def blobs(seed: int = 0) -> Domains:
    """Return three classes as three blobs in the plane, in domains `near`, `turned` and `far`.

    Train a source model on `near`; the other domains are rotated away from it.

    Examples
    --------
    >>> domains = blobs()
    >>> list(domains.parts), domains.shape
    (['near', 'turned', 'far'], (2,))
    """
    return Domains.from_arrays(_CLASSES, {name: _draw(name, seed) for name in _DRIFTS})


def _draw(
    domain: str, seed: int
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float32]], list[int]]:
    draw = generator(seed, "blobs", domain)
    degrees, origin = _DRIFTS[domain]
    labels = np.arange(_SAMPLES) % len(_CLASSES)
    angles = np.deg2rad(degrees + labels * (360 / len(_CLASSES)))
    centres = _RADIUS * np.stack([np.cos(angles), np.sin(angles)], axis=1) + np.array(origin)
    points = centres + draw.normal(scale=_SPREAD, size=centres.shape)
    return points.astype(np.float32), labels.tolist()
