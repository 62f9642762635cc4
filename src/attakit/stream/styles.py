"""Give handwritten digits another look. Images are (count, 28, 28) with ink 1 on paper 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

Style = Callable[[Tensor, np.random.Generator], Tensor]

_SIDE = 28


def texture(images: Tensor, draw: np.random.Generator) -> Tensor:
    """Put the ink on a cluttered background, faintly, and turn some images into negatives."""
    count = len(images)
    clutter = 0.5 * _smooth_noise(count, 4, draw) + 0.5 * _smooth_noise(count, 11, draw)
    strength = _uniform(count, 0.55, 0.85, draw)
    contrast = _uniform(count, 0.45, 0.75, draw)
    background = clutter * strength
    picture = background + images * contrast * (1 - 0.5 * background)
    picture = picture.clamp(0, 1)
    is_negative = torch.from_numpy(draw.random(count) < 0.35)[:, None, None]
    return torch.where(is_negative, 1 - picture, picture)


def outline(images: Tensor, draw: np.random.Generator) -> Tensor:
    """Keep only the contour of the strokes, slightly turned, slanted and scaled."""
    moved = _move(images, draw)
    fine = F.interpolate(moved[:, None], scale_factor=3.0, mode="bicubic", align_corners=False)
    ink = torch.sigmoid((fine - 0.45) * 12)
    ring = _grow(ink, 4) - _grow(ink, 1)
    return F.avg_pool2d(ring, 3)[:, 0].clamp(0, 1)


def _smooth_noise(count: int, cells: int, draw: np.random.Generator) -> Tensor:
    """Random hills between 0 and 1, about `cells` of them across an image."""
    coarse = torch.from_numpy(draw.random((count, 1, cells, cells), dtype=np.float32))
    hills = F.interpolate(coarse, size=(_SIDE, _SIDE), mode="bicubic", align_corners=False)[:, 0]
    low, high = hills.amin((1, 2), keepdim=True), hills.amax((1, 2), keepdim=True)
    return (hills - low) / (high - low)


def _uniform(count: int, low: float, high: float, draw: np.random.Generator) -> Tensor:
    """One number per image, shaped to multiply images."""
    return torch.from_numpy(draw.uniform(low, high, (count, 1, 1)).astype(np.float32))


def _grow(ink: Tensor, pixels: int) -> Tensor:
    """Widen strokes to all sides. A square maximum is one along rows, then one along columns."""
    width = 2 * pixels + 1
    along_rows = F.max_pool2d(ink, (1, width), stride=1, padding=(0, pixels))
    return F.max_pool2d(along_rows, (width, 1), stride=1, padding=(pixels, 0))


def _move(images: Tensor, draw: np.random.Generator) -> Tensor:
    count = len(images)
    angle = draw.uniform(-0.3, 0.3, count)
    slant = draw.uniform(-0.25, 0.25, count)
    scale = draw.uniform(0.9, 1.15, count)
    rows = np.zeros((count, 2, 3), dtype=np.float32)
    rows[:, 0, 0] = np.cos(angle) * scale
    rows[:, 0, 1] = (slant - np.sin(angle)) * scale
    rows[:, 1, 0] = np.sin(angle) * scale
    rows[:, 1, 1] = np.cos(angle) * scale
    grid = F.affine_grid(torch.from_numpy(rows), [count, 1, _SIDE, _SIDE], align_corners=False)
    return F.grid_sample(images[:, None], grid, align_corners=False)[:, 0]
