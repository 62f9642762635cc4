"""Strengths of the corruptions of CIFAR-C and Tiny-ImageNet-C, severities 1 to 5.

The numbers come from the scripts that made the published sets, make_cifar_c.py and
make_tinyimagenet_c.py of https://github.com/hendrycks/robustness (Apache-2.0).
"""

from __future__ import annotations

from typing import Literal

ParameterSet = Literal["imagenet", "tiny", "cifar"]
Values = tuple[float, ...]

LARGEST_CIFAR = 48  # pixels of the shorter side, half-way from 32 to 64
LARGEST_TINY = 112  # half of 224

# noise: deviation, photons, share of values, deviation; blurs: sigma; (radius, softness);
# (sigma, reach, rounds); (radius, sigma); largest zoom; snow: (mean, deviation, zoom, threshold,
# radius, sigma, share of the image); frost and fog: weights and (strength, decay); then contrast,
# brightness, saturate (factor, shift), quality, share of pixels, (strength, sigma, affine).
CIFAR: dict[str, tuple[Values, ...]] = {
    "gaussian_noise": ((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
    "shot_noise": ((500,), (250,), (100,), (75,), (50,)),
    "impulse_noise": ((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
    "speckle_noise": ((0.06,), (0.1,), (0.12,), (0.16,), (0.2,)),
    "gaussian_blur": ((0.4,), (0.6,), (0.7,), (0.8,), (1,)),
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "zoom_blur": ((1.05,), (1.1,), (1.15,), (1.2,), (1.25,)),
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    "frost": ((1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "brightness": ((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),
    "contrast": ((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    "jpeg_compression": ((80,), (65,), (58,), (50,), (40,)),
    "pixelate": ((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),
    "elastic_transform": (
        (0, 0, 0.08),
        (0.05, 0.2, 0.07),
        (0.08, 0.06, 0.06),
        (0.1, 0.04, 0.05),
        (0.1, 0.03, 0.03),
    ),
}

TINY: dict[str, tuple[Values, ...]] = {
    "gaussian_noise": ((0.04,), (0.08,), (0.12,), (0.15,), (0.18,)),
    "shot_noise": ((250,), (100,), (50,), (30,), (15,)),
    "impulse_noise": ((0.01,), (0.02,), (0.05,), (0.08,), (0.14,)),
    "speckle_noise": ((0.15,), (0.2,), (0.25,), (0.3,), (0.35,)),
    "gaussian_blur": ((0.5,), (0.75,), (1,), (1.25,), (1.5,)),
    "defocus_blur": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
    "glass_blur": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
    "motion_blur": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
    "zoom_blur": ((1.05,), (1.1,), (1.15,), (1.2,), (1.25,)),
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
    ),
    "frost": ((1, 0.3, 0.3), (0.9, 0.4, 0.3), (0.8, 0.45, 0.3), (0.75, 0.5, 0.3), (0.7, 0.55, 0.3)),
    "fog": ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
    "brightness": ((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
    "contrast": ((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
    "saturate": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
    "jpeg_compression": ((65,), (58,), (50,), (40,), (25,)),
    "pixelate": ((0.9,), (0.8,), (0.7,), (0.6,), (0.5,)),
    "elastic_transform": (
        (0, 0, 0.08),
        (0.05, 0.3, 0.06),
        (0.1, 0.08, 0.06),
        (0.1, 0.03, 0.03),
        (0.16, 0.03, 0.02),
    ),
}


def usual_parameters(side: int) -> ParameterSet:
    """Return the published set with the nearest image size.

    >>> [usual_parameters(side) for side in (32, 64, 224)]
    ['cifar', 'tiny', 'imagenet']
    """
    if side <= LARGEST_CIFAR:
        return "cifar"
    return "tiny" if side <= LARGEST_TINY else "imagenet"


def small_values(parameters: ParameterSet, corruption: str, severity: int) -> Values | None:
    """Return the numbers of a corruption for small images; None if those of ImageNet-C apply.

    >>> small_values("cifar", "gaussian_noise", 5), small_values("imagenet", "gaussian_noise", 5)
    ((0.1,), None)
    """
    tables = {"cifar": CIFAR, "tiny": TINY, "imagenet": {}}
    found = tables[parameters].get(corruption)
    return None if found is None else found[severity - 1]
