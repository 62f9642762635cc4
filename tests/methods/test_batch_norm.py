import pytest
import torch
from torch import nn

from attakit.errors import SettingError
from attakit.methods import BatchNorm, SourceOnly
from attakit.queries import Allowance
from attakit.testing import tiny_batch, tiny_classifier


def test_it_normalises_with_the_mean_and_variance_of_the_batch():
    model, inputs = tiny_classifier().eval(), tiny_batch().inputs
    first, norm, last = model[0], model[1], model[3]
    hidden = first(inputs)
    deviation = ((hidden - hidden.mean(0)) ** 2).mean(0).add(norm.eps).sqrt()
    normal = norm.weight * (hidden - hidden.mean(0)) / deviation + norm.bias
    expected = last(normal.relu())
    given = BatchNorm(model).step(tiny_batch(), Allowance(0)).prediction
    assert torch.allclose(given.logits, expected, atol=1e-5)
    assert torch.allclose(given.features, normal.relu(), atol=1e-5)


def test_images_are_normalised_per_channel_over_all_pixels():
    model = nn.Sequential(nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))
    inputs = torch.randn(5, 2, 2, 2, generator=torch.Generator().manual_seed(0)) * 3 + 1
    mean = inputs.mean(dim=(0, 2, 3), keepdim=True)
    variance = inputs.var(dim=(0, 2, 3), keepdim=True, unbiased=False)
    normal = (inputs - mean) / (variance + model[0].eps).sqrt()
    expected = model[2](normal.flatten(1))
    assert torch.allclose(BatchNorm(model).predict(inputs).logits, expected, atol=1e-5)


def test_it_keeps_nothing_from_batch_to_batch():
    method = BatchNorm(tiny_classifier())
    first = method.step(tiny_batch(0), Allowance(0)).prediction.logits
    method.step(tiny_batch(1), Allowance(0))
    assert torch.equal(method.step(tiny_batch(0), Allowance(0)).prediction.logits, first)


def test_without_batch_norm_it_answers_as_the_source_model():
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))
    inputs = tiny_batch().inputs
    assert torch.equal(BatchNorm(model).predict(inputs).logits, model(inputs))


def test_a_single_vector_is_answered_with_the_stored_statistics():
    model, inputs = tiny_classifier(), tiny_batch(size=1).inputs
    expected = SourceOnly(model).predict(inputs).logits
    assert torch.equal(BatchNorm(model).predict(inputs).logits, expected)


def test_source_samples_mix_the_stored_statistics_in():
    model, inputs = tiny_classifier().eval(), tiny_batch().inputs  # stored: mean 0, variance 1
    hidden = model[0](inputs)
    # N = 24 beside n = 8 samples (Schneider et al. 2020): three parts stored, one part batch.
    mean, variance = 0.25 * hidden.mean(0), 0.75 + 0.25 * hidden.var(0)
    expected = model[3](((hidden - mean) / (variance + model[1].eps).sqrt()).relu())
    given = BatchNorm(model, source_samples=24).step(tiny_batch(), Allowance(0)).prediction.logits
    assert torch.allclose(given, expected, atol=1e-5)


def test_blended_statistics_follow_the_stream_with_a_share_found_on_it():
    method = BatchNorm(tiny_classifier(), norm="blended")
    for number in range(8):
        method.step(tiny_batch(number), Allowance(0))
    (memory,) = method.model.stream.layers
    assert float(memory.count) == 64
    assert method.model.stream.share.seen == 32  # enough samples to choose the share on


def test_with_blended_statistics_the_exported_model_answers_each_sample_alone():
    method = BatchNorm(tiny_classifier(), norm="blended")
    for number in range(4):
        method.step(tiny_batch(number), Allowance(0))
    inputs, model = tiny_batch(9).inputs, method.adapted_model
    alone = torch.cat([model(each[None]) for each in inputs])
    assert torch.allclose(model(inputs), alone, atol=1e-6)


def test_blended_statistics_and_source_samples_together_are_refused():
    with pytest.raises(SettingError, match="Leave one of them out"):
        BatchNorm(tiny_classifier(), norm="blended", source_samples=16)


def test_negative_source_samples_are_refused():
    with pytest.raises(SettingError, match="BatchNorm: source_samples must be at least 0, got -1"):
        BatchNorm(tiny_classifier(), source_samples=-1)
