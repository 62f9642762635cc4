import pytest
import torch
from torch import nn

from attakit.nn import Classifier, SmallCNN
from attakit.nn.seeding import seeded
from attakit.nn.split import Split, find_split
from attakit.nn.trainable import trainable_parameters


def images(count=6):
    return torch.randn(count, 1, 28, 28, generator=torch.Generator().manual_seed(0))


def digits(trainable="last:3", norm="frozen"):
    with seeded(0, "model"):
        classifier = Classifier(SmallCNN()).eval()
    classifier.use_norm(norm)
    trainable_parameters(classifier, trainable)
    return classifier


@pytest.mark.parametrize(
    ("trainable", "layer"),
    [("last:4", "block2"), ("last:2", "hidden"), ("head", "head"), ("all", ""), ("norm", "")],
)
def test_a_split_is_before_the_first_layer_that_trains(trainable, layer):
    assert find_split(digits(trainable), images()).layer == layer


@pytest.mark.parametrize("norm", ["frozen", "blended"])
@pytest.mark.parametrize("trainable", ["last:4", "last:3", "head", "all"])
def test_the_rest_of_a_pass_gives_what_the_whole_pass_gives(trainable, norm):
    split = find_split(digits(trainable, norm), images())

    prediction, activations = split.run(images())
    again = split(activations)

    torch.testing.assert_close(again.logits, prediction.logits)
    torch.testing.assert_close(again.features, prediction.features)


def test_gradients_of_the_rest_are_those_of_the_whole_pass():
    classifier = digits()
    split = find_split(classifier, images())
    trained = [parameter for parameter in classifier.parameters() if parameter.requires_grad]

    whole = torch.autograd.grad(classifier(images()).logits.square().sum(), trained)
    with torch.no_grad():
        _, activations = split.run(images())
    rest = torch.autograd.grad(split(activations).logits.square().sum(), trained)

    for one, other in zip(whole, rest, strict=True):
        torch.testing.assert_close(one, other)


def test_layers_in_front_see_no_sample():
    classifier = digits()
    split = find_split(classifier, images())
    _, activations = split.run(images())
    seen = []
    classifier.model.block1.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))

    split(activations)

    assert seen == [0]


def test_no_hook_is_left_behind():
    classifier = digits()
    split = find_split(classifier, images())
    split(split.run(images())[1])

    assert not any(layer._forward_pre_hooks for layer in classifier.modules())


class GoesAround(nn.Module):
    """A skip connection over every place where the network could be split."""

    def __init__(self):
        super().__init__()
        self.front = nn.Linear(4, 4)
        self.back = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, inputs):
        return self.head(self.back(self.front(inputs)) + inputs.mean())


class NeedsSamples(GoesAround):
    """A front that fails on an empty batch."""

    def forward(self, inputs):
        return self.head(self.back(self.front(inputs) - inputs[0]))


@pytest.mark.parametrize("kind", [GoesAround, NeedsSamples])
def test_a_network_that_cannot_continue_is_not_split(kind):
    classifier = Classifier(kind()).eval()
    trainable_parameters(classifier, "last:2")

    split = find_split(classifier, torch.randn(5, 4))

    assert split.is_whole
    torch.testing.assert_close(split(torch.ones(2, 4)).logits, classifier(torch.ones(2, 4)).logits)


@pytest.mark.parametrize("norm", ["batch", "running"])
def test_a_network_whose_statistics_move_is_not_split(norm):
    assert find_split(digits(norm=norm), images()).is_whole


def test_a_split_has_the_parameters_and_the_norm_of_its_classifier():
    classifier = digits(norm="blended")
    split = Split(classifier, "block3", images()[:0])

    assert split.norm == "blended"
    assert set(split.parameters()) == set(classifier.parameters())
