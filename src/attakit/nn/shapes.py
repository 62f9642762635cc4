"""Convert a model's output to one row of logits and one row of features per input."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from attakit.errors import ModelError


def as_logits(output: object, rows: int) -> Tensor:
    """Return logits of shape (rows, classes) from any output of a model.

    One logit per input counts as two classes, the first of which has the logit zero.

    >>> as_logits(torch.tensor([3.0, -3.0]), 2)
    tensor([[ 0.,  3.],
            [ 0., -3.]])
    """
    logits = _find_tensor(output)
    if not logits.is_floating_point():
        raise ModelError(
            f"Classifier: the model returned {logits.dtype} numbers, which look like decided "
            f"classes; it must return logits, one number per class before the softmax."
        )
    if logits.ndim < 2 or (logits.ndim == 2 and logits.shape[1] == 1):
        # By the number of elements, because squeeze() may drop a batch of one. The number of rows
        # is not a constant of the result, so that an exported program takes any.
        if logits.numel() == rows:
            positive = logits.reshape(-1, 1)
            return torch.cat([torch.zeros_like(positive), positive], dim=1)
    elif logits.ndim == 2 and logits.shape[0] == rows:
        return logits
    raise ModelError(
        f"Classifier: {rows} inputs gave logits of shape {tuple(logits.shape)}; expected "
        f"({rows}, classes). Only classifiers with one label per input can be adapted."
    )


def as_rows(layer: nn.Module, features: Tensor, rows: int) -> Tensor:
    """Return one row of features per input, from the input of a layer.

    Tokens before a linear layer and positions before a convolution are averaged, so that the number
    of features does not depend on the input size. Everything else is flattened.

    >>> as_rows(nn.Linear(4, 2), torch.zeros(3, 7, 4), 3).shape
    torch.Size([3, 4])
    """
    if features.ndim < 2 or features.shape[0] != rows:
        raise ModelError(
            f"Classifier: {rows} inputs gave features of shape {tuple(features.shape)}; the "
            f'first dimension must be the batch. Name another layer (features="…").'
        )
    if features.ndim > 2 and isinstance(layer, nn.Linear):
        return features.flatten(1, -2).mean(dim=1)
    if features.ndim > 2 and isinstance(layer, _ConvNd):
        return features.flatten(2).mean(dim=2)
    return features.flatten(1)


def _find_tensor(output: object) -> Tensor:
    logits = output.get("logits") if isinstance(output, Mapping) else output
    logits = getattr(logits, "logits", logits)
    if not isinstance(logits, Tensor):
        raise ModelError(
            f"Classifier: the model returned {type(output).__name__}; it must return a tensor of "
            f"logits (or an object with .logits). Wrap it in a module that does."
        )
    return logits
