import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attakit.errors import ModelError
from attakit.nn import Classifier, SmallCNN
from attakit.nn.depths import find_depths, predict_with_depths
from attakit.nn.seeding import seeded


def images(count=3, channels=1, side=28):
    return torch.randn(count, channels, side, side, generator=torch.Generator().manual_seed(0))


def mlp(*widths):
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    with seeded(0, "mlp"):
        return Classifier(nn.Sequential(*layers[:-1])).eval()


class Residual(nn.Module):
    """One block of a residual network."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, maps):
        inside = self.conv2(self.conv1(maps).relu())
        return (inside + self.shortcut(maps)).relu()


class Residuals(nn.Module):
    """The order of layers in a residual network with four stages of two blocks."""

    def __init__(self):
        super().__init__()
        widths = [4, 4, 6, 8, 10]
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.layers = nn.ModuleList()
        for stage in range(4):
            into, out = widths[stage], widths[stage + 1]
            self.layers.append(Residual(into, out, 1 if stage == 0 else 2))
            self.layers.append(Residual(out, out, 1))
        self.fc = nn.Linear(10, 7)

    def forward(self, inputs):
        maps = self.stem(inputs)
        for layer in self.layers:
            maps = layer(maps)
        return self.fc(maps.mean((2, 3)))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        block = nn.TransformerEncoderLayer(8, 2, 32, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(block, 8, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens):
        return self.head(self.body(self.embed(tokens)).mean(1))


def test_a_residual_network_shows_the_stage_before_the_last_and_the_middle_of_the_last():
    names = find_depths(Classifier(Residuals()).eval(), images(channels=3, side=32))
    # layers.6 reads the end of the third stage; layers.7 reads the first block of the fourth.
    assert names == ("layers.6.conv1", "layers.7.conv1")


def test_a_transformer_shows_its_upper_blocks_but_not_the_inside_of_their_mlps():
    tokens = torch.arange(10).reshape(2, 5)
    names = find_depths(Classifier(Transformer()).eval(), tokens)
    assert names == ("body.layers.6.linear1", "body.layers.7.linear1")


@pytest.mark.parametrize(
    ("widths", "names"),
    [
        ((4, 8, 3), ()),
        ((4, 8, 7, 3), ("2",)),
        ((4, 8, 7, 6, 3), ("4",)),
        ((4, 9, 8, 7, 6, 3), ("4", "6")),
    ],
)
def test_an_mlp_shows_its_middle_and_its_last_hidden_layer(widths, names):
    assert find_depths(mlp(*widths), torch.ones(2, 4)) == names


def test_features_are_normalised_inputs_of_the_layers_after_the_penultimate_ones():
    classifier, inputs = mlp(4, 8, 7, 3), torch.randn(3, 4, generator=torch.Generator())
    first, _, second, _, _ = classifier.model
    one = first(inputs).relu()
    two = second(one).relu()
    found = predict_with_depths(classifier, inputs, ["2"])
    expected = torch.cat([F.normalize(two, dim=1), F.normalize(one, dim=1)], dim=1)
    assert torch.allclose(found.features, expected)
    assert torch.equal(found.prediction.logits, classifier(inputs).logits)


def test_maps_are_averaged_over_positions():
    classifier, inputs = Classifier(SmallCNN()).eval(), images()
    maps = classifier.model.block2(classifier.model.block1(inputs))
    found = predict_with_depths(classifier, inputs, ["block3.0"])
    assert torch.allclose(found.features[:, 64:], F.normalize(maps.mean((2, 3)), dim=1), atol=1e-6)


def test_a_name_that_is_no_layer_is_refused_with_the_nearest():
    with pytest.raises(ModelError, match=r"no layer named 'block3.9'.*block3"):
        predict_with_depths(Classifier(SmallCNN()).eval(), images(), ["block3.9"])


def test_a_layer_that_does_not_run_is_refused():
    model = SmallCNN()
    model.spare = nn.Linear(2, 2)
    classifier = Classifier(model, features="head").eval()
    with pytest.raises(ModelError, match="'spare' did not run"):
        predict_with_depths(classifier, images(), ["spare"])


def test_no_hooks_stay_behind():
    classifier = Classifier(SmallCNN()).eval()
    predict_with_depths(classifier, images(), find_depths(classifier, images()))
    assert not any(layer._forward_pre_hooks for layer in classifier.modules())
