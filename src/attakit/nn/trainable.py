"""The parameters to train: all, those of the norm layers, the head, or the last stages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn

from attakit.errors import DoesNotApply, ModelError, SettingError, check_range
from attakit.nn.classifier import Classifier
from attakit.nn.norm import norm_parameters

# A child with more of the model's parameters than this is a container of stages, not a stage.
CONTAINER_SHARE = 0.9
# The same for a child that would otherwise be the only block.
LONE_CONTAINER_SHARE = 0.5

# "auto": a smaller model trains completely; of a larger one the last stages with this share of the
# parameters train.
SMALL = 1_000_000
LATE_SHARE = 0.5

_WHO = "trainable_parameters"
_EARLY = "early_norm_parameters"
_LAST = re.compile(r"last:([1-9]\d*)")


def trainable_parameters(classifier: Classifier, which: str) -> list[nn.Parameter]:
    """Let exactly the named parameters train, freeze the others, and return those that train.

    Parameters
    ----------
    classifier
        The classifier. The `requires_grad` of its parameters is set in place.
    which
        "all", "norm" (scales and shifts of normalisation layers), "head" (the last layer), "last:N"
        (the last N stages, in the model's order of registration), or "auto". For a ResNet, "last:2"
        is layer4 and fc; in a ViT every block counts as one. "auto" is all of a model with less
        than a million parameters. Of a larger one it is the last stages with half of the parameters
        (layer4 and fc of a ResNet).

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    >>> classifier = Classifier(model)
    >>> [len(trainable_parameters(classifier, name)) for name in ("all", "norm", "head", "last:2")]
    [6, 2, 2, 4]
    """
    return _let_train(classifier, _choose(classifier, which))


def early_norm_parameters(classifier: Classifier, left_out: float) -> list[nn.Parameter]:
    """Let norm layers train except in the last blocks, freeze the others, return those that train.

    A block is a stage that holds norm layers and other parameters: layer1 to layer4 of a ResNet,
    each block of a ViT. Everything after the first excluded block is excluded too, such as the
    final norm layer of a ViT. A quarter excludes layer4, or the last 3 of 12 blocks.

    Parameters
    ----------
    classifier
        The classifier. The `requires_grad` of its parameters is set in place.
    left_out
        Share of the blocks to exclude, from 0 to 1, rounded to whole blocks.

    Examples
    --------
    >>> from attakit.nn.small import SmallCNN
    >>> [len(early_norm_parameters(Classifier(SmallCNN()), share)) for share in (0, 0.25)]
    [6, 4]
    """
    check_range(_EARLY, "left_out", left_out, at_least=0, at_most=1)
    norm = set(_norm(classifier))
    stages, blocks = _find_blocks(classifier, norm)
    count = int(left_out * len(blocks) + 0.5)
    end = blocks[-count] if count else len(stages)
    early = [parameter for stage in stages[:end] for parameter in stage if parameter in norm]
    if not early:
        raise ModelError(
            f"{_EARLY}: all norm layers of {type(classifier.model).__name__} are in the excluded "
            f"blocks. Exclude less than {left_out} of them; 0 excludes none."
        )
    return _let_train(classifier, list(dict.fromkeys(early)))


@contextmanager
def training_only(model: nn.Module, parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Give gradients to only some parameters of a model inside the block.

    Examples
    --------
    >>> layer = nn.Linear(2, 2)
    >>> with training_only(layer, [layer.bias]):
    ...     [each.requires_grad for each in layer.parameters()]
    [False, True]
    >>> layer.weight.requires_grad
    True
    """
    before = [(each, each.requires_grad) for each in model.parameters()]
    chosen = {id(each) for each in parameters}
    for each, _ in before:
        each.requires_grad_(id(each) in chosen)
    try:
        yield
    finally:
        for each, trains in before:
            each.requires_grad_(trains)


def find_stages(
    model: nn.Module, container_share: float = CONTAINER_SHARE
) -> list[list[nn.Parameter]]:
    """Return the parameters of a model, stage by stage.

    A stage is a child that has parameters; a child with nearly all of them (more than
    `container_share`) is opened. Other parameters of a container (position embeddings) belong to
    its first stage.

    Examples
    --------
    >>> [len(stage) for stage in find_stages(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))]
    [2, 2]
    """
    return _open(model, container_share * _count(model))


def block_layers(classifier: Classifier) -> list[nn.Module]:
    """Return the blocks of a model: layer1 to layer4 of a ResNet, each block of a ViT.

    Examples
    --------
    >>> from attakit.nn.small import SmallCNN
    >>> model = SmallCNN()
    >>> block_layers(Classifier(model)) == [model.block1, model.block2, model.block3]
    True
    """
    stages, blocks = _find_blocks(classifier, set(norm_parameters(classifier.model)))
    layers = [(layer, set(layer.parameters())) for layer in classifier.model.modules()]
    found = [
        next((layer for layer, own in layers if own and own <= set(stages[place])), None)
        for place in blocks
    ]
    return [layer for layer in found if layer is not None]


def _find_blocks(
    classifier: Classifier, norm: set[nn.Parameter]
) -> tuple[list[list[nn.Parameter]], list[int]]:
    """Return the stages of a model, and which of them are blocks."""
    stages = find_stages(classifier.model)
    blocks = _blocks(stages, norm)
    if len(blocks) == 1:  # all blocks in one container, as in an EfficientNet
        stages = find_stages(classifier.model, LONE_CONTAINER_SHARE)
        blocks = _blocks(stages, norm)
    return stages, blocks


def _blocks(stages: list[list[nn.Parameter]], norm: set[nn.Parameter]) -> list[int]:
    """Return the places of the stages that hold norm layers and other parameters."""
    return [place for place, stage in enumerate(stages) if 0 < len(norm & set(stage)) < len(stage)]


def _let_train(classifier: Classifier, chosen: list[nn.Parameter]) -> list[nn.Parameter]:
    chosen = [parameter for parameter in chosen if parameter.is_floating_point()]
    for parameter in classifier.parameters():
        parameter.requires_grad_(False)
    for parameter in chosen:
        parameter.requires_grad_(True)
    return chosen


def _choose(classifier: Classifier, which: str) -> list[nn.Parameter]:
    if which == "all" or (which == "auto" and _count(classifier) < SMALL):
        return list(classifier.parameters())
    if which == "auto":
        return _late(classifier)
    if which == "norm":
        return _norm(classifier)
    if which == "head":
        return _head(classifier)
    last = _LAST.fullmatch(which) if isinstance(which, str) else None
    if last is None:
        raise SettingError(
            f"{_WHO}: which must be all, norm, head or last:N with N at least 1, or auto, got "
            f"{which!r}."
        )
    return _last(classifier, int(last[1]))


def _norm(classifier: Classifier) -> list[nn.Parameter]:
    found = norm_parameters(classifier.model)
    if not found:
        raise DoesNotApply(
            f"{_WHO}: {type(classifier.model).__name__} has no normalisation layers with "
            f"parameters, so 'norm' leaves nothing to train. Choose all, head or last:N."
        )
    return found


def _head(classifier: Classifier) -> list[nn.Parameter]:
    found = list(classifier.head.parameters())
    if not found:
        raise ModelError(
            f"{_WHO}: the head, a {type(classifier.head).__name__}, has no parameters. Choose all, "
            "norm or last:N, or name the last layer with parameters (features=…)."
        )
    return found


def _last(classifier: Classifier, count: int) -> list[nn.Parameter]:
    stages = find_stages(classifier.model)
    if count > len(stages):
        raise ModelError(
            f"{_WHO}: {type(classifier.model).__name__} has {len(stages)} stages, got "
            f"last:{count}. Use at most last:{len(stages)}, or all."
        )
    found = [parameter for stage in stages[-count:] for parameter in stage]
    return list(dict.fromkeys(found))


def _late(classifier: Classifier) -> list[nn.Parameter]:
    """Return the last stages that together hold `LATE_SHARE` of the parameters."""
    wanted, found = LATE_SHARE * _count(classifier), list[nn.Parameter]()
    for stage in reversed(find_stages(classifier.model, LONE_CONTAINER_SHARE)):
        found = [*stage, *found]
        if sum(parameter.numel() for parameter in found) >= wanted:
            break
    return list(dict.fromkeys(found))


def _open(module: nn.Module, limit: float) -> list[list[nn.Parameter]]:
    stages: list[list[nn.Parameter]] = []
    for child in module.children():
        if _count(child) > limit:
            stages += _open(child, limit)
        elif _count(child) > 0:
            stages.append(list(child.parameters()))
    own = list(module.parameters(recurse=False))
    if not stages:
        return [own] if own else []
    return [own + stages[0], *stages[1:]]


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
