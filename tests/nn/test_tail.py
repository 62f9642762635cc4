import pytest
import torch
from torch import nn

from attakit.nn import SmallCNN
from attakit.nn.classifier import Classifier
from attakit.nn.depths import predict_with_depths
from attakit.nn.seeding import seeded
from attakit.nn.tail import Kept, Tail, find_tail, plain_copy

DEPTHS = ["block3.0", "hidden.2"]


def network(**settings):
    with seeded(0, "model"):
        return Classifier(SmallCNN(width=4, hidden=8, **settings)).eval()


def images(count=6, side=12):
    return torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(1))


def kept_of(tail, classifier, inputs):
    """What a method keeps of samples that were normalised by stored statistics."""
    seen = []
    layer = classifier.model.get_submodule(tail.layer)
    hook = layer.register_forward_pre_hook(lambda _layer, given: seen.append(given[0].detach()))
    found = predict_with_depths(classifier, inputs, DEPTHS)
    hook.remove()
    norms = tail.norm_layers(classifier)
    statistics = tuple(
        tuple(each.expand(len(inputs), -1) for each in (norm.running_mean, norm.running_var))
        for norm in norms
    )
    return Kept(seen[-1], statistics, torch.zeros_like(found.features)), found


def test_all_stages_but_the_first_make_the_tail_of_a_small_network():
    tail = find_tail(network(), images(), DEPTHS)
    assert tail.layer == "block2"
    assert tail.norms == ("block2.1", "block3.1")
    assert not any(name.startswith("block1") for name in tail.trained_names)
    assert "block2.0.weight" in tail.trained_names


@pytest.mark.parametrize(
    ("model", "inputs", "depths"),
    [
        (network(), images(side=112), DEPTHS),  # 4 x 56 x 56 values are too many
        # 16 x 25 x 25 activations fit into 20 kB, but not together with 192 statistics
        (Classifier(SmallCNN(width=16)), images(side=50), DEPTHS),
        (network(), images(), ["block1.0"]),  # a feature in front of the tail
        (Classifier(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))), torch.ones(2, 4), []),
    ],
)
def test_some_networks_have_none(model, inputs, depths):
    assert find_tail(model.eval(), inputs, depths) is None


def test_the_classifier_is_left_as_it_was():
    classifier = network().requires_grad_(False)
    classifier.use_norm("blended")
    before = {name: value.clone() for name, value in classifier.state_dict().items()}
    find_tail(classifier, images(), DEPTHS)
    assert all(torch.equal(before[name], each) for name, each in classifier.state_dict().items())
    assert not any(parameter.requires_grad for parameter in classifier.parameters())
    assert classifier.norm == "blended"


def test_from_kept_activations_it_says_what_the_whole_network_says():
    classifier = network()
    tail = find_tail(classifier, images(), DEPTHS)
    kept, found = kept_of(tail, classifier, images())
    again = tail.run(tail.source, kept).prediction
    assert torch.allclose(again.logits, found.prediction.logits, atol=1e-5)
    assert torch.allclose(again.features, found.features, atol=1e-5)


def test_what_is_kept_takes_two_bytes_per_value_and_comes_back():
    classifier = network()
    tail = find_tail(classifier, images(), DEPTHS)
    kept, _ = kept_of(tail, classifier, images())
    packed = tail.pack(kept)
    back = tail.unpack(packed)
    assert packed.dtype == torch.float16
    assert torch.allclose(back.entry, kept.entry, atol=1e-2)
    for one, other in zip(back.statistics, kept.statistics, strict=True):
        assert all(torch.allclose(*pair, atol=1e-2) for pair in zip(one, other, strict=True))


def test_it_is_saved_and_loaded():
    classifier = network()
    tail = find_tail(classifier, images(), DEPTHS)
    other = Tail.from_state(plain_copy(classifier), tail.state_dict())
    kept, _ = kept_of(tail, classifier, images())
    assert other.trained_names == tail.trained_names
    given = (each.run(each.source, kept).prediction.logits for each in (tail, other))
    assert torch.equal(*given)
