"""The corruptions of CIFAR-C and Tiny-ImageNet-C for one small image, at any strength.

An image is (height, width, 3) with numbers from 0 to 1. All random numbers come from the given
generator.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from attakit.stream.corruption_parameters import Values

Floats = NDArray[Any]
Draws = np.random.Generator

_LUMINANCE = np.array([0.299, 0.587, 0.114])
_DISC_REACH = 8
_FROST_PICTURES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def gaussian_noise(image: Floats, values: Values, draws: Draws) -> Floats:
    return image + draws.normal(scale=values[0], size=image.shape)


def shot_noise(image: Floats, values: Values, draws: Draws) -> Floats:
    return draws.poisson(image * values[0]) / values[0]


def impulse_noise(image: Floats, values: Values, draws: Draws) -> Floats:
    hit, white = draws.random(image.shape) < values[0], draws.random(image.shape) < 0.5
    return np.where(hit, white, image)


def speckle_noise(image: Floats, values: Values, draws: Draws) -> Floats:
    return image + image * draws.normal(scale=values[0], size=image.shape)


def gaussian_blur(image: Floats, values: Values, _draws: Draws) -> Floats:
    return _blurred(image, values[0])


def defocus_blur(image: Floats, values: Values, _draws: Draws) -> Floats:
    radius, softness = values
    place = np.arange(-_DISC_REACH, _DISC_REACH + 1)
    disc = (np.hypot(*np.meshgrid(place, place)) <= radius).astype(float)
    kernel = ndimage.gaussian_filter(disc / disc.sum(), softness, radius=1)
    return np.stack([ndimage.convolve(image[..., c], kernel, mode="mirror") for c in range(3)], -1)


def glass_blur(image: Floats, values: Values, draws: Draws) -> Floats:
    sigma, reach, rounds = values[0], int(values[1]), int(values[2])
    moved = _blurred(image, sigma)
    height, width, _ = moved.shape
    for _ in range(rounds):
        shifts = draws.integers(-reach, reach, size=(height, width, 2))
        for row in range(height - reach, reach, -1):
            for column in range(width - reach, reach, -1):
                down, right = shifts[row - 1, column - 1]
                # In the published images a pixel takes the neighbour's colour; the two are not
                # swapped.
                moved[row, column] = moved[row + down, column + right]
    return _blurred(moved, sigma)


def motion_blur(image: Floats, values: Values, draws: Draws) -> Floats:
    return _streaked(image, values[0], values[1], draws.uniform(-45, 45))


def zoom_blur(image: Floats, values: Values, _draws: Draws) -> Floats:
    factors = 1 + 0.01 * np.arange(round(100 * (values[0] - 1)) + 1)
    return np.asarray(np.mean([image, *(_zoomed(image, factor) for factor in factors)], axis=0))


def snow(image: Floats, values: Values, draws: Draws) -> Floats:
    mean, deviation, zoom, threshold, radius, sigma, kept = values
    layer = _zoomed(draws.normal(mean, deviation, size=(*image.shape[:2], 1)), zoom)
    layer = np.where(layer < threshold, 0, layer).clip(0, 1)
    flakes = _streaked(layer, radius, sigma, draws.uniform(-135, -45))
    grey = (image @ _LUMINANCE)[..., None]
    whiter = kept * image + (1 - kept) * np.maximum(image, 1.5 * grey + 0.5)
    return np.asarray(whiter + flakes + flakes[::-1, ::-1])


def frost(image: Floats, values: Values, draws: Draws) -> Floats:
    kept, ice, scale = values
    picture = _frost_picture(_FROST_PICTURES[draws.integers(len(_FROST_PICTURES))], scale)
    height, width, _ = image.shape
    top = draws.integers(picture.shape[0] - height)
    left = draws.integers(picture.shape[1] - width)
    return np.asarray(kept * image + ice * picture[top : top + height, left : left + width])


def fog(image: Floats, values: Values, draws: Draws) -> Floats:
    strength, decay = values
    side = 1 << (max(image.shape[:2]) - 1).bit_length()
    cloud = _cloud(side, decay, draws)[: image.shape[0], : image.shape[1], None]
    brightest = image.max()
    return np.asarray((image + strength * cloud) * brightest / (brightest + strength))


def brightness(image: Floats, values: Values, _draws: Draws) -> Floats:
    value = image.max(axis=2, keepdims=True)
    brighter = np.minimum(value + values[0], 1)
    # Hue and saturation stay, so all channels grow equally; black has none and becomes grey.
    grown = image * brighter / np.where(value > 0, value, 1)
    return np.asarray(np.where(value > 0, grown, brighter))


def contrast(image: Floats, values: Values, _draws: Draws) -> Floats:
    mean = image.mean(axis=(0, 1), keepdims=True)
    return np.asarray((image - mean) * values[0] + mean)


def saturate(image: Floats, values: Values, _draws: Draws) -> Floats:
    factor, shift = values
    value, least = image.max(axis=2, keepdims=True), image.min(axis=2, keepdims=True)
    chroma = value - least
    before = chroma / np.where(value > 0, value, 1)
    after = np.clip(before * factor + shift, 0, 1)
    # The distance of each channel from the brightest; grey has the hue of red.
    depth = np.where(chroma > 0, (value - image) / np.where(chroma > 0, chroma, 1), [0.0, 1.0, 1.0])
    return np.asarray(value * (1 - after * depth))


def jpeg_compression(image: Floats, values: Values, _draws: Draws) -> Floats:
    file = io.BytesIO()
    _as_picture(image).save(file, "JPEG", quality=int(values[0]))
    return _as_floats(Image.open(file))


def pixelate(image: Floats, values: Values, _draws: Draws) -> Floats:
    height, width, _ = image.shape
    small = (int(width * values[0]), int(height * values[0]))
    box = Image.Resampling.BOX
    return _as_floats(_as_picture(image).resize(small, box).resize((width, height), box))


def elastic_transform(image: Floats, values: Values, draws: Draws) -> Floats:
    height, width, _ = image.shape
    side = min(height, width)
    strength, sigma, affine = (value * side for value in values)
    rows, columns = np.mgrid[:height, :width].astype(float)
    rows, columns = _affine(rows, columns, affine, draws)
    turned = _sampled(image, rows, columns, "mirror")
    rows, columns = np.mgrid[:height, :width].astype(float)
    rows += strength * _smooth_field((height, width), sigma, draws)
    columns += strength * _smooth_field((height, width), sigma, draws)
    return _sampled(turned, rows, columns, "reflect")


def _affine(rows: Floats, columns: Floats, most: float, draws: Draws) -> tuple[Floats, Floats]:
    """Return where pixels come from if three corners of a central square move at random."""
    height, width = rows.shape
    centre, half = np.array([height // 2, width // 2]), min(height, width) // 3
    before = centre + half * np.array([[1, 1], [1, -1], [-1, -1]])
    after = before + draws.uniform(-most, most, size=(3, 2))
    # From the new places to the old ones.
    matrix = np.linalg.solve(np.c_[after, np.ones(3)], before)
    found = np.stack([rows, columns, np.ones_like(rows)], axis=-1) @ matrix
    return found[..., 0], found[..., 1]


def _sampled(image: Floats, rows: Floats, columns: Floats, mode: str) -> Floats:
    places = [rows, columns]
    channels = [
        ndimage.map_coordinates(image[..., c], places, order=1, mode=mode) for c in range(3)
    ]
    return np.stack(channels, axis=-1)


def _smooth_field(shape: tuple[int, int], sigma: float, draws: Draws) -> Floats:
    field = draws.uniform(-1, 1, size=shape)
    return np.asarray(ndimage.gaussian_filter(field, sigma, mode="reflect", truncate=3))


def _blurred(image: Floats, sigma: float) -> Floats:
    return np.asarray(ndimage.gaussian_filter(image, (sigma, sigma, 0), mode="nearest"))


def _streaked(image: Floats, radius: float, sigma: float, angle: float) -> Floats:
    """Blur in one direction: half a Gaussian, in whole pixels."""
    steps = np.arange(2 * int(radius) + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    height, width = image.shape[:2]
    blurred = np.zeros_like(image)
    for step, weight in zip(steps, weights / weights.sum(), strict=True):
        down, right = (round(step * part) for part in _direction(angle))
        rows = np.clip(np.arange(height) + down, 0, height - 1)
        columns = np.clip(np.arange(width) + right, 0, width - 1)
        blurred += weight * image[rows][:, columns]
    return blurred


def _direction(angle: float) -> tuple[float, float]:
    turned = np.deg2rad(angle)
    return float(np.sin(turned)), float(np.cos(turned))


def _zoomed(image: Floats, factor: float) -> Floats:
    """Enlarge the middle of an image to its full size."""
    height, width, _ = image.shape
    rows, columns = (int(np.ceil(side / factor)) for side in (height, width))
    top, left = (height - rows) // 2, (width - columns) // 2
    middle = image[top : top + rows, left : left + columns]
    large = ndimage.zoom(middle, (factor, factor, 1), order=1)
    top, left = (large.shape[0] - height) // 2, (large.shape[1] - width) // 2
    return np.asarray(large[top : top + height, left : left + width])


def _cloud(side: int, decay: float, draws: Draws) -> Floats:
    """Return plasma from 0 to 1 on a torus: midpoints are means of four points plus noise."""
    cloud, step, rough = np.zeros((side, side)), side, 1.0
    while step >= 2:
        half = step // 2
        corners = cloud[::step, ::step]
        right, below = np.roll(corners, -1, 1), np.roll(corners, -1, 0)
        middle = (corners + right + below + np.roll(below, -1, 1)) / 4
        cloud[half::step, half::step] = middle + _rough(middle, rough, draws)
        middle = cloud[half::step, half::step]
        across = (corners + right + middle + np.roll(middle, 1, 0)) / 4
        cloud[::step, half::step] = across + _rough(across, rough, draws)
        down = (corners + below + middle + np.roll(middle, 1, 1)) / 4
        cloud[half::step, ::step] = down + _rough(down, rough, draws)
        # Squared, as in the published images.
        step, rough = half, rough / decay**2
    cloud -= cloud.min()
    return np.asarray(cloud / cloud.max())


def _rough(like: Floats, most: float, draws: Draws) -> Floats:
    return draws.uniform(-most, most, size=like.shape)


@lru_cache(maxsize=16)
def _frost_picture(name: str, scale: float) -> Floats:
    with resources.as_file(resources.files("imagecorruptions") / "frost" / name) as path:
        picture = Image.open(path).convert("RGB")
    size = (round(picture.width * scale), round(picture.height * scale))
    return _as_floats(picture.resize(size, Image.Resampling.BILINEAR))


def _as_picture(image: Floats) -> Image.Image:
    return Image.fromarray((image * 255).round().astype(np.uint8))


def _as_floats(picture: Image.Image) -> Floats:
    return np.asarray(picture, dtype=np.float64) / 255


SMALL_CORRUPTIONS: dict[str, Callable[[Floats, Values, Draws], Any]] = {
    each.__name__: each
    for each in (
        gaussian_noise,
        shot_noise,
        impulse_noise,
        defocus_blur,
        glass_blur,
        motion_blur,
        zoom_blur,
        snow,
        frost,
        fog,
        brightness,
        contrast,
        elastic_transform,
        pixelate,
        jpeg_compression,
        speckle_noise,
        gaussian_blur,
        saturate,
    )
}


def corrupt_small(
    pixels: NDArray[np.uint8], corruption: str, values: Values, *, seed: int
) -> NDArray[np.uint8]:
    """Corrupt a small image; the same arguments give the same result.

    >>> grey = np.full((32, 32, 3), 128, dtype=np.uint8)
    >>> int(corrupt_small(grey, "brightness", (0.1,), seed=0).max())
    153
    """
    draws = np.random.default_rng(seed)
    corrupted = SMALL_CORRUPTIONS[corruption](pixels / 255, values, draws)
    bytes_of: NDArray[np.uint8] = (np.clip(corrupted, 0, 1) * 255).astype(np.uint8)
    return bytes_of
