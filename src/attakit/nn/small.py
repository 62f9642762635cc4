"""A small convolutional network for small images."""

from __future__ import annotations

from torch import Tensor, nn

from attakit.errors import check_count

POOLED_SIDE = 3  # the position of strokes matters, so not one value for the whole image


class SmallCNN(nn.Module):
    """Three convolutions with batch norm and max pooling, and two linear layers.

    Made for digits of 28 × 28 pixels; any size from 8 × 8 works.

    Parameters
    ----------
    classes
        Number of classes.
    channels
        Channels of the input images.
    width
        Channels of the first convolution; each later one has twice as many.
    hidden
        Number of penultimate features.

    Examples
    --------
    >>> import torch
    >>> SmallCNN()(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self, *, classes: int = 10, channels: int = 1, width: int = 16, hidden: int = 64
    ) -> None:
        super().__init__()
        for name, value in {
            "classes": classes,
            "channels": channels,
            "width": width,
            "hidden": hidden,
        }.items():
            check_count("SmallCNN", name, value, at_least=1)
        self.block1 = _block(channels, width)
        self.block2 = _block(width, 2 * width)
        self.block3 = _block(2 * width, 4 * width)
        self.hidden = nn.Sequential(
            nn.AdaptiveAvgPool2d(POOLED_SIDE),
            nn.Flatten(),
            nn.Linear(4 * width * POOLED_SIDE**2, hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        maps = self.block3(self.block2(self.block1(inputs)))
        logits: Tensor = self.head(self.hidden(maps))
        return logits


def _block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )
