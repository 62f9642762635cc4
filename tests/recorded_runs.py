"""Small networks and streams for recorded trajectories: the same numbers on every machine."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
from torch import nn

from attakit.queries import SampleId
from attakit.records import Batch, Rows

FOLDER = Path(__file__).parent / "methods" / "reference"
CLASSES = 5
PATTERNS = np.random.default_rng(1).normal(size=(CLASSES, 3, 8, 8))
NORMS = {"batch": nn.BatchNorm2d, "group": lambda channels: nn.GroupNorm(2, channels)}


def recording(name):
    """What was recorded for a method."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def network(norm="batch"):
    """A CNN with stages named like those of a ResNet, whose head knows the patterns."""
    stages = {"stem": _block(norm, 3), **{f"layer{at}": _block(norm, 8) for at in range(1, 5)}}
    encoder = nn.Sequential(
        OrderedDict(stages, pool=nn.AdaptiveAvgPool2d(2), flat=nn.Flatten()),
    )
    model = nn.Sequential(OrderedDict(encoder=encoder, fc=nn.Linear(32, CLASSES)))
    with torch.no_grad():
        _fill(encoder, np.random.default_rng(0))
        _meet_source(encoder)
        _fit_head(model.fc, encoder(torch.from_numpy(PATTERNS).float()))
    return model.eval()


def _block(norm, inputs):
    return nn.Sequential(nn.Conv2d(inputs, 8, 3, padding=1, bias=False), NORMS[norm](8), nn.ReLU())


def _meet_source(encoder):
    """Set the stored statistics to those of the stream before it shifts."""
    layers = [layer for layer in encoder.modules() if isinstance(layer, nn.BatchNorm2d)]
    for layer in layers:
        layer.momentum = 1.0
    encoder.train()(labelled_stream(1, 64, seed=3)[0][0].inputs)
    encoder.eval()


def _fit_head(head, means):
    """Let the logit of a class be 3 on its own pattern, and 0 on the mean of all."""
    middle = means.mean(dim=0)
    directions = means - middle
    lengths = directions.square().sum(dim=1, keepdim=True)
    head.weight.copy_(3 * directions / lengths)
    head.bias.copy_(-head.weight @ middle)


def _fill(model, random):
    """Set all weights, in the order of the parameters."""
    for name, value in model.named_parameters():
        drawn = torch.from_numpy(random.normal(size=tuple(value.shape))).float()
        if value.ndim > 1:
            value.copy_(drawn / value[0].numel() ** 0.5)
        elif name.endswith("weight"):
            value.copy_(1 + 0.1 * drawn)
        else:
            value.copy_(0.1 * drawn)


def labelled_stream(batches, size, *, seed=2):
    """Batches of class patterns in noise, and their classes; contrast and brightness drift."""
    random = np.random.default_rng(seed)
    stream, labels = [], {}
    for step in range(batches):
        classes = random.integers(CLASSES, size=size)
        images = PATTERNS[classes] + random.normal(scale=0.7, size=(size, 3, 8, 8))
        shifted = (1 + 0.1 * step) * images + 0.15 * step
        names = tuple(SampleId(f"{step}-{row}") for row in range(size))
        labels |= dict(zip(names, classes.tolist(), strict=True))
        stream.append(Batch(step, names, torch.from_numpy(shifted).float()))
    return stream, labels


def stream(batches=6, size=8):
    return labelled_stream(batches, size)[0]


def candidates(seed, count=60):
    """Rows to choose from: features around a few centres, and logits that follow them."""
    random = np.random.default_rng(seed)
    centres = random.normal(scale=2.0, size=(6, 5))
    groups = random.integers(6, size=count)
    features = centres[groups] + random.normal(size=(count, 5))
    logits = features @ random.normal(size=(5, CLASSES))
    names = tuple(SampleId(f"{row}") for row in range(count))
    both = (torch.from_numpy(array).float() for array in (features, logits))
    return Rows(names, *both, torch.ones(count))
