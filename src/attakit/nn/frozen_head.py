"""A network and a small head on top of it, as one module that answers each sample alone."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attakit.nn.classifier import Classifier
from attakit.nn.depths import pooled, unit_rows, watching
from attakit.nn.frozen_styles import FrozenStyles, following, freeze_styles
from attakit.nn.shapes import as_logits

NETWORK = "network."  # prefix of the network's tensors in the state dict
_STYLES = "styles."  # prefix of the tensors of style groups
_SMALLEST = 1e-8  # smallest probability with a finite logarithm
_PARTS = ("centre", "weights", "hedge")


def head_logits(features: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    """Return the logits of the head: the network's own, plus the head's correction.

    >>> head_logits(torch.ones(1, 1), torch.ones(1, 2), torch.tensor([[1.0, 0.0], [0.5, 0.0]]))
    tensor([[2.5000, 1.0000]])
    """
    weights = weights.to(features)
    return offsets + features @ weights[:-1] + weights[-1]


class FrozenHead(nn.Module):
    """A network whose logits a small head corrects. Nothing in it changes between inputs.

    Batch-norm statistics, style groups and the means of domains are those of the moment of its
    creation. A method may smooth predictions over similar samples. That needs other samples, so it
    is not part of this module. The output is log probabilities. Without a head it is the network's
    own.

    Parameters
    ----------
    network
        A module from a batch to logits. It is used directly, not copied.
    layers
        Names of the network's layers whose inputs are the head's features, the penultimate ones
        first. Empty without a head.
    centre
        Vector to subtract from the features of all layers together, each of length 1. One row for
        each style group, if there are any.
    weights
        The head: a row per feature and one for the bias, a column per class.
    hedge
        Share of the network's own answer, 0 to 1.
    styles
        Groups of samples with their own statistics and centre. None for one style.

    Examples
    --------
    >>> network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> model = FrozenHead(network, ["2"], torch.zeros(8), torch.zeros(9, 3), 0.3)
    >>> torch.allclose(model(torch.ones(2, 4)), network(torch.ones(2, 4)).log_softmax(dim=1))
    True
    """

    centre: Tensor | None
    weights: Tensor | None
    hedge: Tensor | None

    def __init__(
        self,
        network: nn.Module,
        layers: Sequence[str] = (),
        centre: Tensor | None = None,
        weights: Tensor | None = None,
        hedge: Tensor | float | None = None,
        styles: FrozenStyles | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.styles = styles
        self.layers = tuple(layers)
        given = (centre, weights, None if hedge is None else torch.as_tensor(hedge))
        for name, tensor in zip(_PARTS, given, strict=True):
            self.register_buffer(name, None if tensor is None else tensor.detach().clone())

    @staticmethod
    def of(
        classifier: Classifier,
        layers: Sequence[str],
        centre: Tensor | None,
        weights: Tensor | None,
        hedge: float,
    ) -> FrozenHead:
        """Freeze a classifier with blended statistics and its head, in their current state.

        The copy shares the classifier's parameters, which makes it fast; statistics are copied.

        Parameters
        ----------
        classifier
            The classifier. It is not changed.
        layers
            Names of the layers other than the penultimate one.
        centre
            One row for each style group of the stream. Without it there is no head.
        weights, hedge
            As in `FrozenHead`. Without weights there is no head.
        """
        network = copy_sharing(classifier.model)
        groups = None if classifier.stream is None else classifier.stream.styles.groups
        styles = freeze_styles(groups, network)
        network.eval()
        made = FrozenHead(network, styles=styles)
        if centre is not None and weights is not None:
            centre = centre[0] if styles is None else centre
            names = [classifier.head_name, *layers]
            made = FrozenHead(network, names, centre, weights, hedge, styles)
        # On the network's device, because a loaded state is on the CPU.
        return made.to(classifier.device)

    @staticmethod
    def restored(
        network: nn.Module, layers: Sequence[str], tensors: Mapping[str, Tensor]
    ) -> FrozenHead:
        """Restore a module from its own tensors and its network.

        Parameters
        ----------
        network
            Provides the tensors that are not given. It is not changed, and shares its parameters.
        layers
            As in `FrozenHead`.
        tensors
            Tensors by their names in the state dict. All must fit.
        """
        own = {name.removeprefix(NETWORK) for name in tensors if name.startswith(NETWORK)}
        centre, weights, hedge = (tensors.get(name) for name in _PARTS)
        groups = {
            name.removeprefix(_STYLES): each
            for name, each in tensors.items()
            if name.startswith(_STYLES)
        }
        styles = FrozenStyles(groups) if groups else None
        made = FrozenHead(copy_sharing(network, apart=own), layers, centre, weights, hedge, styles)
        made.load_state_dict(made.state_dict() | dict(tensors))
        device = next(network.parameters()).device
        return made.to(device).eval()

    def forward(self, inputs: Tensor) -> Tensor:
        watched = {name: self.network.get_submodule(name) for name in self.layers}
        seen: dict[str, Tensor] = {}
        count = inputs.shape[0]  # len() would make the example's size a constant of a program
        styles = following(self.styles, self.network, inputs)
        with watching(watched, seen.__setitem__), styles as found:
            offsets = as_logits(self.network(inputs), count).float()
        chances = offsets.softmax(dim=1)
        if self.centre is not None and self.weights is not None and self.hedge is not None:
            rows = unit_rows(pooled(watched, seen, count))
            centre = found[0].members @ self.centre if found else self.centre
            features = F.normalize(rows - centre, dim=1)
            corrected = head_logits(features, offsets, self.weights).softmax(dim=1)
            own = torch.lerp(corrected, chances, self.hedge)
            chances = torch.lerp(own, chances, found[0].home) if found else own
        return chances.clamp(min=_SMALLEST).log()


def copy_sharing(network: nn.Module, *, apart: Collection[str] = ()) -> nn.Module:
    """Copy a network that shares its parameters with the original, except those named.

    >>> layer = nn.BatchNorm1d(2)
    >>> twin = copy_sharing(layer)
    >>> twin.weight is layer.weight, twin.running_mean is layer.running_mean
    (True, False)
    """
    kept = {id(each): each for name, each in network.named_parameters() if name not in apart}
    return copy.deepcopy(network, kept)
