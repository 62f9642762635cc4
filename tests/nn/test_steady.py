import torch
from torch import nn

from attakit.nn import Classifier, SmallCNN
from attakit.nn.norm import batch_norm_layers
from attakit.nn.steady import steady_statistics
from attakit.nn.stream_memory import blended_statistics
from attakit.nn.styles import StyleGroups


def blending():
    classifier = Classifier(SmallCNN()).eval()
    classifier.use_norm("blended")
    classifier(torch.randn(20, 1, 28, 28))
    classifier.keep_statistics()
    return classifier


def test_inside_an_answer_does_not_depend_on_the_batch():
    classifier, inputs = blending(), torch.randn(8, 1, 28, 28)

    with torch.no_grad(), steady_statistics(classifier):
        together = classifier(inputs).logits
        alone = torch.cat([classifier(each[None]).logits for each in inputs])

    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_a_pass_inside_leaves_no_trace():
    classifier = blending()
    layers = batch_norm_layers(classifier)
    before = [blended_statistics(layer) for layer in layers]
    stored = [layer.running_mean.clone() for layer in layers]

    with steady_statistics(classifier):
        classifier(torch.full((8, 1, 28, 28), 50.0))
    classifier.keep_statistics()

    for layer, old, mean in zip(layers, before, stored, strict=True):
        assert all(map(torch.equal, blended_statistics(layer), old))
        assert torch.equal(layer.running_mean, mean)


def test_with_style_groups_a_stored_sample_is_normalised_by_its_own_group():
    dark, bright = torch.randn(80, 1, 28, 28), 8 + 3 * torch.randn(80, 1, 28, 28)
    classifier = Classifier(SmallCNN()).eval()
    classifier.use_norm("blended", source_share=0.0, groups=StyleGroups())
    with torch.no_grad():
        usual = classifier(torch.cat([dark, bright])).logits
        classifier.keep_statistics()
        with steady_statistics(classifier):
            stored = torch.cat([classifier(dark).logits, classifier(bright).logits])

    torch.testing.assert_close(stored, usual, rtol=1e-3, atol=1e-4)


def test_models_that_do_not_blend_are_left_alone():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()
    inputs = torch.randn(4, 2)

    with steady_statistics(model):
        assert torch.equal(model(inputs), model.eval()(inputs))
