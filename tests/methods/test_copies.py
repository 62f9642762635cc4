"""No method holds more copies of the model than its paper needs."""

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from attakit.methods import EATA, METHODS, SAR, BatchNorm, SimATTA, SourceOnly, Tent
from attakit.queries import Allowance
from attakit.testing import tiny_batch, tiny_classifier

# The adapting model, and what a paper wants besides: SimATTA the source model, which
# pseudo-labels; CoTTA (Wang et al. 2022) a teacher, and the source weights to restore from; HILTTA
# (Li et al. 2024) the source model, whose answers candidates are compared with; CPATTA (Shi et al.
# 2025) the source model, whose certainty chooses what the model labels itself; RoTTA (Yuan et
# al. 2023) a teacher.
COPIES = {
    "anchor_head": 2,  # the source's stages, to train from and to answer samples from home
    "cotta": 3,
    "cpatta": 2,
    "hiltta": 2,
    "rotta": 2,
    "simatta": 2,
    "simatta_reference": 2,
}


def tensors_in(part, seen):
    """Every tensor that an object of the library holds, once; gradients and momentum left out."""
    if id(part) in seen or isinstance(part, Optimizer):
        return
    seen[id(part)] = part
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, nn.Module):
        yield from tensors_in([*part.parameters(), *part.buffers(), vars(part)], seen)
    elif isinstance(part, dict):
        yield from tensors_in(list(part.values()), seen)
    elif isinstance(part, (list, tuple, set)):
        for each in part:
            yield from tensors_in(each, seen)
    elif type(part).__module__.startswith("attakit"):
        slots = [getattr(part, name) for name in getattr(part, "__slots__", ())]
        yield from tensors_in([vars(part) if hasattr(part, "__dict__") else {}, slots], seen)


def after_some_steps(kind, **settings):
    """A method that has seen three batches of five, so that no batch has the shape of a weight."""
    method = kind(tiny_classifier(), **settings)
    for number in range(3):
        method.step(tiny_batch(number, size=5), Allowance(0))
        method.learn(())
    return method


def copies_of(method):
    """How often the weight of the first layer is held, which no norm layer has the shape of."""
    memory = {tensor.data_ptr(): tuple(tensor.shape) for tensor in tensors_in(method, {})}
    return list(memory.values()).count((8, 4))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_holds_the_model_as_often_as_its_paper_needs(name):
    assert copies_of(after_some_steps(METHODS[name])) == COPIES.get(name, 1)


def test_a_copy_too_many_is_noticed():
    method = after_some_steps(Tent)
    method.first = tiny_classifier()
    method.second = [{"weight": torch.zeros(8, 4)}]
    assert copies_of(method) == 3


@pytest.mark.parametrize(
    ("kind", "settings", "vectors"),
    [
        (SourceOnly, {}, 5),  # bias of the first layer; scale, shift, mean and variance of the norm
        (BatchNorm, {}, 5),
        (Tent, {}, 5),
        (EATA, {}, 5),
        (EATA, {"source_inputs": torch.ones(6, 4)}, 5 + 4),  # Fisher and origin, scale and shift
        (SAR, {}, 5 + 2),  # origin of scale and shift
        (SimATTA, {}, 2 * 5),
    ],
)
def test_beside_the_model_only_norm_parameters_are_kept(kind, settings, vectors):
    method = after_some_steps(kind, **settings)
    memory = {tensor.data_ptr(): tuple(tensor.shape) for tensor in tensors_in(method, {})}
    assert list(memory.values()).count((8,)) == vectors
    assert (6, 4) not in memory.values()  # inputs of the source are used and let go
