"""Random views of a batch, to average a model's answers over them.

Everything is relative to the batch: shifts and noise are measured in its standard deviation, and
nothing is clipped at 0 and 1. So inputs may be normalised in any way.
"""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

# The strengths are those of CoTTA's published code. Brightness is a shift instead of a factor,
# because on normalised inputs zero is not black. That code also changes gamma, which has no meaning
# here.
BRIGHTNESS = 0.4  # standard deviations
CONTRAST = 0.3
SATURATION = 0.5
HUE = 0.06  # full turns
ROTATION = 15.0  # degrees
SCALING = 0.1
TRANSLATION = 1 / 16  # share of the side
BLUR = 0.5  # pixels
NOISE = 0.02  # standard deviations

IMAGE_DIMENSIONS = 4
COLOURS = 3
_BLUR_REACH = 2  # pixels to either side


def augment(inputs: Tensor, random: torch.Generator, *, mirror: bool = True) -> Tensor:
    """Make one random view of every sample, each with its own draw.

    Images of shape (batch, channels, height, width) are changed in colour (if there are three
    channels), rotated, scaled, shifted, mirrored and slightly blurred, and get some noise. Inputs
    of another shape get only the noise. Inputs that are not floats stay unchanged.

    Parameters
    ----------
    inputs
        Batch of any size. It is not changed.
    random
        Source of all draws, on the device of the inputs.
    mirror
        True to mirror about every other image.

    Examples
    --------
    >>> random = torch.Generator().manual_seed(0)
    >>> augment(torch.rand(2, 3, 8, 8), random).shape
    torch.Size([2, 3, 8, 8])
    """
    if not inputs.is_floating_point() or inputs.numel() == 0:
        return inputs
    spread = inputs.std(correction=0)
    views = inputs
    if inputs.ndim == IMAGE_DIMENSIONS:
        if inputs.shape[1] == COLOURS:
            views = jitter_colours(views, random, spread)
        views = blur(move(views, random, mirror=mirror), random)
    noise = torch.randn(inputs.shape, generator=random, dtype=inputs.dtype, device=inputs.device)
    return views + NOISE * spread * noise


def shuffle_patches(inputs: Tensor, random: torch.Generator, *, patches: int = 4) -> Tensor:
    """Cut every image into a grid and put its parts together in random order.

    The parts keep their content, but the shape of the object is lost. Sides that the grid does not
    divide are resized to the next smaller length that it does, and back. Inputs of another shape
    have their values shuffled.

    Parameters
    ----------
    inputs
        Batch of any size. It is not changed.
    random
        Source of all draws, on the device of the inputs.
    patches
        Number of parts along each side.

    Examples
    --------
    >>> image = torch.arange(16.0).view(1, 1, 4, 4)
    >>> parts = shuffle_patches(image, torch.Generator().manual_seed(0), patches=2)
    >>> parts.shape, sorted(parts.flatten().tolist()) == image.flatten().tolist()
    (torch.Size([1, 1, 4, 4]), True)
    """
    if inputs.ndim != IMAGE_DIMENSIONS:
        flat = inputs.flatten(1)
        return flat.gather(1, _orders(flat, flat.shape[1], random)).view(inputs.shape)
    count, channels, *sides = inputs.shape
    cut = [max(side // patches, 1) * patches for side in sides]
    tall, wide = (side // patches for side in cut)
    parts = _resize(inputs, cut).reshape(count, channels, patches, tall, patches, wide)
    parts = parts.permute(0, 2, 4, 1, 3, 5).reshape(count, patches**2, channels, tall, wide)
    order = _orders(inputs, patches**2, random)
    parts = parts[torch.arange(count, device=order.device)[:, None], order]
    parts = parts.view(count, patches, patches, channels, tall, wide).permute(0, 3, 1, 4, 2, 5)
    return _resize(parts.reshape(count, channels, *cut), sides)


def jitter_colours(images: Tensor, random: torch.Generator, spread: Tensor) -> Tensor:
    """Change brightness, contrast, saturation and hue of images with three channels.

    >>> grey = torch.ones(1, 3, 2, 2)
    >>> random = torch.Generator().manual_seed(0)
    >>> changed = jitter_colours(grey, random, spread=torch.tensor(1.0))
    >>> bool((changed - changed.mean()).abs().max() < 1e-6)  # grey stays grey
    True
    """
    draw = partial(_draw, images, random)
    mean = images.mean(dim=(1, 2, 3), keepdim=True)
    images = mean + (images - mean) * (1 + draw(CONTRAST)) + draw(BRIGHTNESS) * spread
    grey = images.mean(dim=1, keepdim=True)
    colour = (images - grey) * (1 + draw(SATURATION))
    return grey + _turn_hue(colour, 2 * math.pi * draw(HUE))


def move(images: Tensor, random: torch.Generator, *, mirror: bool = True) -> Tensor:
    """Rotate, scale, shift and perhaps mirror images; pixels from outside repeat the edge.

    >>> move(torch.ones(2, 1, 5, 7), torch.Generator().manual_seed(0)).shape
    torch.Size([2, 1, 5, 7])
    """
    draw = partial(_draw, images, random)
    angle = math.radians(ROTATION) * draw(1.0).flatten()
    zoom = 1 + draw(SCALING).flatten()
    turned_round = (draw(1.0).flatten() < 0) & mirror
    side = 1 - 2 * turned_round.to(images.dtype)
    # A grid holds the origin of each pixel, in units of half the side: for images that are not
    # square, a rotation must consider both sides.
    wide = images.shape[3] / images.shape[2]
    cosine, sine = angle.cos() / zoom, angle.sin() / zoom
    across, down = 2 * draw(TRANSLATION).flatten(), 2 * draw(TRANSLATION).flatten()
    rows = [[cosine * side, -sine / wide, across], [sine * side * wide, cosine, down]]
    matrices = torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)
    grid = F.affine_grid(matrices, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def blur(images: Tensor, random: torch.Generator) -> Tensor:
    """Blur images with a Gaussian of random width.

    >>> flat = torch.ones(1, 2, 4, 4)
    >>> torch.allclose(blur(flat, torch.Generator().manual_seed(0)), flat)
    True
    """
    width = BLUR * (_draw(images, random, 1.0) + 1) / 2
    weights = [
        torch.exp(-0.5 * (reach / width.clamp_min(1e-3)) ** 2)
        for reach in range(-_BLUR_REACH, _BLUR_REACH + 1)
    ]
    total = torch.stack(weights).sum(dim=0)
    for dimension in (2, 3):
        images = _smooth(images, [weight / total for weight in weights], dimension)
    return images


def _orders(inputs: Tensor, length: int, random: torch.Generator) -> Tensor:
    """Return a random order of `length` places for every sample."""
    return torch.rand((len(inputs), length), generator=random, device=inputs.device).argsort(dim=1)


def _resize(images: Tensor, sides: list[int]) -> Tensor:
    if list(images.shape[2:]) == sides:
        return images
    return F.interpolate(images, size=sides, mode="bilinear", antialias=True)


def _smooth(images: Tensor, weights: list[Tensor], dimension: int) -> Tensor:
    """Return the weighted sum of an image and its neighbours in one direction."""
    reach = (_BLUR_REACH, _BLUR_REACH)
    padded = F.pad(images, (0, 0, *reach) if dimension == 2 else (*reach, 0, 0), mode="replicate")
    size = images.shape[dimension]
    smooth = weights[0] * padded.narrow(dimension, 0, size)
    for start, weight in enumerate(weights[1:], start=1):
        smooth = smooth.addcmul_(weight, padded.narrow(dimension, start, size))
    return smooth


def _turn_hue(colour: Tensor, angle: Tensor) -> Tensor:
    """Rotate colours, which have no grey in them, around the grey axis."""
    # For vectors v at right angles to the unit axis a, a rotation is v·cos + (a × v)·sin.
    red, green, blue = colour.unbind(dim=1)
    across = torch.stack([blue - green, red - blue, green - red], dim=1) / math.sqrt(COLOURS)
    return colour * angle.cos() + across * angle.sin()


def _draw(images: Tensor, random: torch.Generator, limit: float) -> Tensor:
    """Return one number between minus and plus the limit for every image."""
    share = torch.rand(
        (len(images), 1, 1, 1), generator=random, dtype=images.dtype, device=images.device
    )
    return limit * (2 * share - 1)
