"""Style groups in a frozen version: each sample gets the statistics of its own groups."""

from functools import cache

import pytest
import torch
from torch import nn

from attakit.methods import AnchorHead
from attakit.nn import ModelFacts, SmallCNN, export_model, named_model, prepare, weights_hash
from attakit.nn.head_files import difference, load_model, save_difference
from attakit.nn.seeding import seeded
from attakit.nn.source_card import make_card, save_card
from attakit.queries import Allowance, Answer
from attakit.records import Batch

DIGIT, IMAGE = (1, 28, 28), (3, 32, 32)


def small(*norms):
    """A small network with convolutions and some norm layer."""
    return nn.Sequential(
        *norms,
        nn.Conv2d(1, 4, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 3),
    )


class NormAndActivation(nn.BatchNorm2d):
    """As in timm: a norm layer whose forward ends with an activation."""

    def forward(self, inputs):
        return super().forward(inputs).relu()


def with_activations():
    layer = nn.Conv2d(1, 4, 3, stride=2)
    rest = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    return nn.Sequential(layer, NormAndActivation(4), nn.Conv2d(4, 4, 3), *rest)


MODELS = {
    "batch norm": (SmallCNN, DIGIT),
    "residual": (lambda: named_model("resnet18", classes=3), IMAGE),
    "no norm": (small, DIGIT),
    "batch norm of the inputs": (lambda: small(nn.BatchNorm2d(1)), DIGIT),
    "activation in the norm layer": (with_activations, DIGIT),
}


def built(name):
    with seeded(0, "model"):
        return MODELS[name][0]()


def two_styles(shape, count, seed=0):
    random = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, *shape, generator=random)
    inputs[::2] = 3 - 5 * inputs[::2]
    return inputs


@cache
def adapted(name, **settings):
    """A method after three batches of two styles, the last one, and its answer to it."""
    method, shape = (
        AnchorHead(built(name), smoothing=0.0, competing=False, **settings),
        MODELS[name][1],
    )
    for number in range(3):
        inputs = two_styles(shape, 60, seed=number)
        samples = tuple(f"{number}-{place}" for place in range(60))
        step = method.step(Batch(number, samples, inputs), Allowance(10))
        if number < 2:
            given = enumerate(step.queries)
            method.learn([Answer(query, place % 3, "me") for place, query in given])
    return method, inputs, step.prediction.logits


@pytest.mark.parametrize("name", MODELS)
def test_a_version_answers_both_styles_as_the_method_did(name):
    method, inputs, logits = adapted(name)
    model = method.adapted_model
    assert len(model.centre) == len(method.domain.state.mean) > 1
    with torch.no_grad():
        assert torch.allclose(model(inputs).exp(), logits.exp(), atol=0.02)


def test_with_one_set_of_statistics_it_would_answer_otherwise():
    method, inputs, logits = adapted("batch norm")
    model = method.adapted_model
    model.styles.ratios.zero_()
    model.styles.gaps.zero_()
    assert not torch.allclose(model(inputs).exp(), logits.exp(), atol=0.1)


@pytest.mark.parametrize("name", MODELS)
def test_single_requests_are_answered_as_in_a_batch(name):
    method, inputs, _ = adapted(name)
    model = method.adapted_model
    alone = torch.cat([model(row[None]) for row in inputs])
    assert torch.allclose(model(inputs), alone, atol=1e-4)


@pytest.mark.parametrize("ending", [".ts", ".pt2", ".onnx"])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "residual"])  # slow
def test_exported_programs_have_the_groups(tmp_path, name, ending):
    method, _, _ = adapted(name)
    facts = ModelFacts("own", ("a", "b", "c"), MODELS[name][1])
    done = export_model(method.adapted_model, tmp_path / f"model{ending}", facts)
    assert done.difference < 1e-3  # on batches of 1, 2 and 5 samples
    assert done.facts.norm == "stored"


@pytest.mark.parametrize("name", MODELS)
def test_a_file_of_what_differs_has_kilobytes_and_gives_the_same_model(tmp_path, name):
    method, inputs, _ = adapted(name)
    model, path = method.adapted_model, tmp_path / "version.safetensors"
    source = prepare(built(name), torch.device("cpu"))
    save_difference(model, source, path)
    again = load_model(source, path)
    assert weights_hash(again) == weights_hash(model)
    assert torch.equal(again(inputs), model(inputs))
    assert path.stat().st_size < 150_000


def test_statistics_of_a_group_take_four_bytes_per_channel():
    method, _, _ = adapted("residual")
    found = difference(method.adapted_model, prepare(built("residual"), torch.device("cpu")))
    assert not [name for name in found if name.startswith("network.")]
    assert found["styles.ratios"][0].nbytes + found["styles.gaps"][0].nbytes == 4 * 4800


def test_source_samples_find_home_with_a_card(tmp_path):
    source = built("batch norm").eval()
    random = torch.Generator().manual_seed(9)
    known = 10 * torch.rand(200, *DIGIT, generator=random)
    save_card(make_card(source, known), tmp_path / "source.safetensors")
    method, inputs, logits = adapted("batch norm", source_card=tmp_path / "source.safetensors")
    model = method.adapted_model
    assert torch.allclose(model(inputs).exp(), logits.exp(), atol=0.02)
    fresh = 10 * torch.rand(20, *DIGIT, generator=random)
    with torch.no_grad():
        assert torch.allclose(model(fresh), source(fresh).log_softmax(1), atol=1e-2)
        assert not torch.allclose(model(inputs), source(inputs).log_softmax(1), atol=0.5)


def test_absurd_samples_have_some_group():
    method, inputs, _ = adapted("batch norm")
    absurd = inputs[:3].clone()
    absurd[0], absurd[1] = float("nan"), 1e30
    found = method.adapted_model.styles(absurd.repeat(1, 16, 1, 1))
    assert found.members.sum(dim=1).allclose(torch.ones(3))


def test_samples_have_the_same_groups_as_in_the_method():
    method, inputs, _ = adapted("batch norm")
    live = method.model.stream.grouping
    first = method.model.model.get_submodule("block1.0")
    with torch.no_grad():
        found = method.adapted_model.styles(nn.Conv2d.forward(first, inputs))
    assert torch.allclose(found.members, live.members, atol=1e-3)
