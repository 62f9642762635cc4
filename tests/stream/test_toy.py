"""The toy domains."""

import torch

from attakit.stream import blobs


def nearest_centre_accuracy(source, part) -> float:
    inputs, labels = source.load(range(len(source))), torch.tensor(source.labels)
    centres = torch.stack([inputs[labels == label].mean(0) for label in range(3)])
    guesses = torch.cdist(part.load(range(len(part))), centres).argmin(1)
    return (guesses == torch.tensor(part.labels)).float().mean().item()


def test_blobs_get_harder_the_further_they_drift():
    parts = blobs().parts

    near, turned, far = (nearest_centre_accuracy(parts["near"], part) for part in parts.values())

    assert near > 0.97
    assert 0.6 < turned < 0.95
    assert far < turned


def test_blobs_depend_on_the_seed_alone():
    one, same, other = (blobs(seed).parts["far"].load([0, 1]) for seed in (0, 0, 1))

    assert torch.equal(one, same)
    assert not torch.equal(one, other)
