"""Project features into the plane, stable from step to step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Plane = NDArray[np.float64]  # (rows, 2)
PlanePoint = tuple[float, float]

_DECIMALS = 3
_ENOUGH_SHARED = 3  # with two points the mirror image is ambiguous


def project(features: Tensor) -> Plane:
    """Project onto the two directions of largest variance (PCA), scaled to unit spread.

    >>> abs(project(torch.tensor([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0]]))).round(2).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    rows = features.detach().cpu().flatten(1).double().nan_to_num(0.0, 0.0, 0.0)
    centred = rows - rows.mean(dim=0)
    plane = np.zeros((len(rows), 2))
    if len(rows) < 2 or not centred.any():
        return plane
    # For few rows, their products cost less than decomposing wide features.
    values, vectors = torch.linalg.eigh(centred @ centred.T)
    wanted = min(2, *centred.shape)
    strongest = values[-wanted:].flip(0).clamp(min=0).sqrt()
    found = (vectors[:, -wanted:].flip(1) * strongest).numpy()
    # The sign of a direction is arbitrary: put the farthest point on the positive side.
    farthest = np.abs(found).argmax(axis=0)
    plane[:, :wanted] = found * np.where(found[farthest, range(wanted)] < 0, -1.0, 1.0)
    return np.asarray(plane / np.sqrt((plane**2).sum(axis=1).mean()))


def project_aligned(
    samples: Sequence[str], features: Tensor, before: Mapping[str, PlanePoint]
) -> dict[str, PlanePoint]:
    """Project samples, rotated so that known ones move as little as possible.

    Rotation and mirroring (orthogonal Procrustes over the shared samples) change no distance.
    Without them the picture would flip from step to step like the directions of PCA. `before` holds
    the positions at the previous step.
    """
    plane = project(features)
    shared = [row for row, sample in enumerate(samples) if sample in before]
    if len(shared) >= _ENOUGH_SHARED:
        old = np.array([before[samples[row]] for row in shared])
        new = plane[shared]
        left, _, right = np.linalg.svd(new.T @ old)
        plane = plane @ (left @ right)
    rounded = plane.round(_DECIMALS) + 0.0  # avoids minus zero
    return {sample: (float(x), float(y)) for sample, (x, y) in zip(samples, rounded, strict=True)}
