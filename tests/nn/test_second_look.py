"""Samples that the first layer cannot tell from the source's."""

import pytest
import torch
from torch import nn

from attakit.errors import ModelError
from attakit.methods import AnchorHead, SimATTA
from attakit.nn import ModelFacts, SmallCNN, export_model
from attakit.nn.classifier import Classifier
from attakit.nn.devices import prepare
from attakit.nn.head_files import load_model, save_difference
from attakit.nn.second_look import SecondLook, features_at
from attakit.nn.seeding import seeded
from attakit.nn.source_card import SourceCard, make_card, save_card, style_groups
from attakit.queries import Allowance, Answer
from attakit.records import Batch


def images(count, *, seed, shuffled=False):
    """Smooth pictures, or the same pixels in random places: the first layer sees no difference."""
    random = torch.Generator().manual_seed(seed)
    edges = torch.linspace(-1, 1, 16)
    slopes = torch.randn(count, 2, generator=random)
    slopes += slopes.sign()  # flat pictures look the same when they are shuffled
    found = 3 * (slopes[:, 0, None, None] * edges[:, None] + slopes[:, 1, None, None] * edges)
    if shuffled:
        order = torch.randperm(256, generator=random)
        found = found.flatten(1)[:, order].unflatten(1, (16, 16))
    return found[:, None]


def network():
    """Its first layer sees single pixels, the deeper ones also their neighbours."""
    with seeded(0, "network"):
        return nn.Sequential(
            nn.Conv2d(1, 4, 1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 3),
        ).eval()


def card(*, deeper=True):
    found = make_card(network(), images(300, seed=100))
    return found if deeper else SourceCard(found.styles)


def card_file(tmp_path, *, deeper=True):
    path = tmp_path / "source.card.safetensors"
    save_card(card(deeper=deeper), path)
    return path


def after_stream(method):
    """Let three batches of shuffled pictures pass."""
    for number in range(3):
        samples = tuple(f"{number}-{place}" for place in range(60))
        batch = Batch(number, samples, images(60, seed=number, shuffled=True))
        queries = method.step(batch, Allowance(10)).queries
        method.learn([Answer(query, place % 3, "me") for place, query in enumerate(queries)])
    return method


def home_of(groups, inputs):
    """The probability of inputs to be from the source."""
    model = Classifier(network()).eval()
    model.use_norm("blended", groups=groups)
    for seed in range(3):
        model(images(60, seed=seed, shuffled=True))
        model.keep_statistics()
    model(inputs)
    return model.stream.grouping.home


@pytest.mark.parametrize("deeper", [False, True])
def test_only_a_deeper_layer_tells_strangers_from_source_samples(deeper):
    source = Classifier(network()).eval()
    groups = style_groups(source, card(deeper=deeper), most=4)
    both = torch.cat([images(40, seed=7), images(40, seed=8, shuffled=True)])
    home = home_of(groups, both)
    assert (home[:40] > 0.5).float().mean() > 0.9
    assert ((home[40:] > 0.5).float().mean() < 0.1) == deeper


def test_samples_of_another_style_cost_no_second_look(monkeypatch):
    source = Classifier(network()).eval()
    second = style_groups(source, card(), most=4).second
    monkeypatch.setattr(second.source.model, "forward", None)  # a pass would fail
    assert second.after(torch.zeros(5), images(5, seed=0)) is None


def test_before_there_are_enough_samples_the_first_look_counts():
    source = Classifier(network()).eval()
    second = style_groups(source, card(), most=4).second
    first = torch.tensor([1.0, 0.0, 0.7])
    assert torch.equal(second.after(first, images(3, seed=0)).home, first)


def test_source_samples_get_the_source_models_answer_and_strangers_do_not(tmp_path):
    path = card_file(tmp_path)
    method = after_stream(AnchorHead(network(), source_card=path, smoothing=0.0))
    known, other = images(40, seed=7), images(40, seed=8, shuffled=True)
    with torch.no_grad():
        expected = network()(known).softmax(dim=1)
        plain = network()(other).softmax(dim=1)
    found = method.predict(known).logits.softmax(dim=1)
    assert ((found - expected).abs().amax(dim=1) < 0.05).float().mean() > 0.9
    away = method.predict(other).logits.softmax(dim=1)
    assert ((away - plain).abs().amax(dim=1) > 0.05).float().mean() > 0.9


def test_simatta_has_the_second_look_too(tmp_path):
    method = after_stream(SimATTA(network(), source_card=card_file(tmp_path)))
    method.predict(images(40, seed=8, shuffled=True))
    assert (method.home.grouping.home > 0.5).float().mean() < 0.1
    method.predict(images(40, seed=7))
    assert (method.home.grouping.home > 0.5).float().mean() > 0.9


def test_a_version_looks_twice_as_well_and_survives_its_file(tmp_path):
    method = after_stream(AnchorHead(network(), source_card=card_file(tmp_path), smoothing=0.0))
    version, path = method.adapted_model, tmp_path / "version.safetensors"
    source = prepare(network(), torch.device("cpu"))
    save_difference(version, source, path)
    again = load_model(source, path)
    both = torch.cat([images(40, seed=7), images(40, seed=8, shuffled=True)])
    with torch.no_grad():
        answers = version(both).exp()
        assert torch.equal(again(both).exp(), answers)
        plain = source(both).softmax(dim=1)
    near = (answers - plain).abs().amax(dim=1) < 0.05
    assert near[:40].float().mean() > 0.9
    assert near[40:].float().mean() < 0.2


@pytest.mark.parametrize("ending", [".ts", ".pt2", ".onnx"])
def test_exported_programs_look_twice_too(tmp_path, ending):
    method = after_stream(AnchorHead(network(), source_card=card_file(tmp_path), smoothing=0.0))
    facts = ModelFacts("own", ("a", "b", "c"), (1, 16, 16))
    done = export_model(method.adapted_model, tmp_path / f"model{ending}", facts)
    assert done.difference < 1e-3  # on batches of 1, 2 and 5 samples


def test_a_method_continues_from_its_state_as_if_it_had_not_stopped(tmp_path):
    path = card_file(tmp_path)
    method = after_stream(AnchorHead(network(), source_card=path))
    again = AnchorHead(network(), source_card=path)
    again.load_state_dict(method.state_dict())
    inputs = images(40, seed=7)
    assert torch.equal(again.predict(inputs).logits, method.predict(inputs).logits)
    assert len(again.styles.second.groups.samples) == len(method.styles.second.groups.samples) > 0


def test_a_forgotten_sample_leaves_the_second_look_too(tmp_path):
    method = after_stream(AnchorHead(network(), source_card=card_file(tmp_path)))
    second = method.styles.second.groups
    gone = second.samples[0]
    method.forget({gone})
    assert gone not in second.samples
    assert len(second.state.memory) == len(second.samples)


def test_a_card_of_another_model_is_refused():
    source, found = Classifier(SmallCNN()).eval(), card()
    second = SecondLook(source, found.layer, found.deeper)
    with pytest.raises(ModelError, match=r"no layer '4'.*attakit card"):
        second.after(torch.ones(2), torch.rand(2, 1, 28, 28))


def test_a_look_at_a_layer_leaves_no_hook():
    source = Classifier(network()).eval()
    features_at(source, "4", images(5, seed=0))
    assert not any(layer._forward_pre_hooks for layer in source.modules())
