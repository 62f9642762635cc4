"""Frozen style groups: they assign each sample alone, and never change."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attakit.nn.blended import first_convolution, freeze_blended, stop_blending
from attakit.nn.depths import watching
from attakit.nn.gaussians import Array, Gaussians
from attakit.nn.norm import batch_norm_layers
from attakit.nn.second_look import UNLIKELY
from attakit.nn.shapes import as_rows
from attakit.nn.stream_memory import blended_statistics, grouped_statistics, sampled_styles
from attakit.nn.styles import StyleGroups, bounded

_NEVER = -1e9  # as a log likelihood
_DEEPER = "deeper."  # prefix of the tensors of a second look


@dataclass(frozen=True, slots=True)
class Membership:
    """Membership of samples in groups, and their probability to be from the source."""

    members: Tensor  # (batch, groups): rows add up to 1
    home: Tensor  # (batch, 1)


class FrozenGroups(nn.Module):
    """Frozen Gaussian groups, and the source's as the last one if it is known.

    Parameters
    ----------
    tensors
        The tensors below, by name.
    """

    centre: Tensor  # (dim,)
    directions: Tensor  # (dim, directions)
    whitening: Tensor  # (groups, and the source's, directions, directions)
    means: Tensor  # (groups, and the source's, directions): after whitening
    constants: Tensor  # (groups, and the source's)
    foreign: Tensor  # (groups,): 0, or very low for a group of source samples

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name in FrozenGroups.__annotations__:
            self._freeze(name, tensors[name])

    def _freeze(self, name: str, tensor: Tensor) -> None:
        # Contiguous, because torch.export warns otherwise.
        self.register_buffer(name, tensor.detach().contiguous().clone())

    def assign(self, rows: Tensor) -> Membership:
        """Return the groups of rows."""
        rows = (bounded(rows) - self.centre) @ self.directions
        # (groups, batch, directions), without a loop over groups
        gaps = rows @ self.whitening - self.means[:, None]
        joint = self.constants - gaps.square().sum(dim=2).T / 2
        count = len(self.foreign)
        members = joint[:, :count].softmax(dim=1)
        if len(self.constants) == count:
            return Membership(members, torch.zeros_like(members[:, :1]))
        against = (joint[:, :count] + self.foreign).logsumexp(dim=1, keepdim=True)
        home = (joint[:, count:] - against).sigmoid()
        return Membership(members, home)


class FrozenStyles(FrozenGroups):
    """Finds the groups of each sample, and normalises it by their batch-norm statistics.

    A group's statistics are stored as differences from the source's: for each channel, the ratio of
    standard deviations minus 1, and the distance of means in standard deviations. Half precision is
    enough for these. Samples from the source are normalised by the source's statistics.

    Parameters
    ----------
    tensors
        Tensors that `StyleGroups` and batch-norm layers give to `freeze_styles`. Those of a second
        look begin with `deeper.`.
    """

    ratios: Tensor  # (groups, channels of all layers)
    gaps: Tensor  # (groups, channels of all layers)
    layer: Tensor  # the layer of the second look: its name in bytes, as files hold tensors only

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        for name in ("ratios", "gaps"):
            self._freeze(name, tensors[name])
        deeper = _inside(tensors, _DEEPER)
        self.deeper = FrozenGroups(deeper) if deeper else None
        if deeper:
            self._freeze("layer", tensors["layer"])
            self.layer_name = bytes(tensors["layer"].tolist()).decode()

    def forward(self, activations: Tensor) -> Membership:
        """Return the groups of samples, from the output of the first convolution."""
        return self.assign(sampled_styles(activations))

    def look_again(self, network: nn.Module, inputs: Tensor, home: Tensor) -> Tensor:
        """Return the probability of each sample to be from the source, by deeper features.

        Parameters
        ----------
        network
            The network, with its stored statistics.
        inputs
            The samples.
        home
            The same probability by the first look: (batch, 1).
        """
        likely = home > UNLIKELY
        # A program that is traced or exported has one path for all inputs.
        fixed = torch.jit.is_tracing() or torch.compiler.is_exporting()  # type: ignore[attr-defined, no-untyped-call]
        if self.deeper is None or not (fixed or bool(likely.any())):
            return home * likely
        layer, seen = network.get_submodule(self.layer_name), list[Tensor]()
        with watching({self.layer_name: layer}, lambda _name, tensor: seen.append(tensor)):
            network(inputs)
        found = self.deeper.assign(as_rows(layer, seen[0], inputs.shape[0]).float())
        return found.home * likely


@contextmanager
def following(
    styles: FrozenStyles | None, network: nn.Module, inputs: Tensor
) -> Iterator[list[Membership]]:
    """Normalise each sample by its groups inside the block.

    Yields a list that gets the membership of the batch when it is known.
    """
    found: list[Membership] = []
    shifts: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def look(_layer: nn.Module, _given: object, outputs: Tensor) -> None:
        if styles is None or found:
            return
        found.append(styles(outputs))  # from here on, the pass of a second look ends above
        home = styles.look_again(network, inputs, found[0].home)
        found[0] = replace(found[0], home=home)
        shifts.update(_shifts(styles, network, found[0].members * (1 - home)))

    def shift(layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if layer not in shifts:  # a layer before the first convolution
            return None
        scale, offset = (
            each.to(given[0].dtype).view(*each.shape, *[1] * (given[0].ndim - 2))
            for each in shifts[layer]
        )
        return (torch.addcmul(offset, given[0], scale), *given[1:])

    first = first_convolution(network)
    hooks = []
    if styles is not None and first is not None:
        hooks = [layer.register_forward_pre_hook(shift) for layer in _layers(network)]
        hooks.append(first.register_forward_hook(look))
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def freeze_styles(groups: StyleGroups | None, network: nn.Module) -> FrozenStyles | None:
    """Freeze the statistics that a network blends, by style group if there are any.

    If all samples are alike, the result is None: one set of statistics in the network is enough.

    Parameters
    ----------
    groups
        The groups of the stream.
    network
        The network. Its batch-norm layers no longer blend, and use stored statistics.
    """
    styles = _styles_of(groups, network)
    if styles is None:
        freeze_blended(network)
    else:
        stop_blending(network)
    return styles


def _styles_of(groups: StyleGroups | None, network: nn.Module) -> FrozenStyles | None:
    if groups is None:
        return None
    found = _tensors_of(groups)
    if found is None or len(found["constants"]) == 1:
        return None
    count = len(found["foreign"])
    nothing = torch.zeros(count, 0), torch.zeros(count, 0)
    differences = [nothing, *(_difference(layer, count) for layer in _layers(network))]
    ratios, gaps = (torch.cat(parts, dim=1).half() for parts in zip(*differences, strict=True))
    found |= {"ratios": ratios, "gaps": gaps}
    second = groups.second
    deeper = None if second is None else _tensors_of(second.groups)
    if second is not None and deeper is not None:
        found |= {f"{_DEEPER}{name}": each for name, each in deeper.items()}
        found["layer"] = torch.tensor(list(second.layer.encode()), dtype=torch.uint8)
    return FrozenStyles(found)


def _tensors_of(groups: StyleGroups) -> dict[str, Tensor] | None:
    """Return the tensors of `FrozenGroups`; None before groups are known."""
    state = groups.state
    if state is None or state.groups is None or state.projection is None:
        return None
    gaussians, count = [state.groups], len(state.groups.weights)
    if state.source is not None:
        gaussians.append(state.source)
    projection = state.projection
    joined = [_whitened(each) for each in gaussians]
    whitening, means, constants = (np.concatenate(parts) for parts in zip(*joined, strict=True))
    plain = {
        "centre": projection.centre,
        "directions": projection.directions / projection.scale[:, None],
        "whitening": whitening,
        "means": means,
        "constants": constants,
        "foreign": np.where(state.home or np.zeros(count, bool), _NEVER, 0.0),
    }
    return {name: torch.from_numpy(each).float() for name, each in plain.items()}


def _inside(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)
    }


def _layers(network: nn.Module) -> list[_BatchNorm]:
    return [layer for layer in batch_norm_layers(network) if layer.running_mean is not None]


def _whitened(gaussians: Gaussians) -> tuple[Array, Array, Array]:
    """Return the whitening of each Gaussian, its whitened mean, and its constant."""
    turned = np.linalg.inv(np.linalg.cholesky(gaussians.covariances)).transpose(0, 2, 1)
    volumes = np.log(np.diagonal(turned, axis1=1, axis2=2)).sum(axis=1)
    constants = np.log(gaussians.weights) + volumes - turned.shape[1] / 2 * np.log(2 * np.pi)
    return turned, (gaussians.means[:, None] @ turned)[:, 0], constants


def _difference(layer: _BatchNorm, groups: int) -> tuple[Tensor, Tensor]:
    """Return how a layer's group statistics differ from its own; it is frozen if it has none."""
    found = grouped_statistics(layer, groups)
    if found is None:
        layer.running_mean, layer.running_var = blended_statistics(layer)
        found = layer.running_mean.expand(groups, -1), layer.running_var.expand(groups, -1)
    mean, deviation = _stored(layer)
    return deviation / (found[1] + layer.eps).sqrt() - 1, (found[0] - mean) / deviation


def _stored(layer: _BatchNorm) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation that a layer itself uses."""
    assert layer.running_mean is not None
    assert layer.running_var is not None
    return layer.running_mean, (layer.running_var + layer.eps).sqrt()


def _shifts(
    styles: FrozenStyles, network: nn.Module, members: Tensor
) -> dict[nn.Module, tuple[Tensor, Tensor]]:
    """Return for each layer the scale and offset of its inputs that replace other statistics.

    With its own statistics a layer then gives the same as with those of the groups.
    """
    layers = _layers(network)
    if not layers:
        return {}
    stored = [_stored(layer) for layer in layers]
    mean, deviation = (torch.cat(parts) for parts in zip(*stored, strict=True))
    ratios, gaps = styles.ratios.to(mean), styles.gaps.to(mean)
    scales = 1 + members @ ratios
    offsets = members @ (-mean * ratios - gaps * deviation * (1 + ratios))
    ends = list(itertools.accumulate(layer.num_features for layer in layers))
    return {
        layer: (scales[:, begin:end], offsets[:, begin:end])
        for layer, begin, end in zip(layers, [0, *ends], ends, strict=False)
    }
