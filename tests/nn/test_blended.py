import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from attakit.errors import SettingError
from attakit.nn import Classifier, ModelFacts, SmallCNN, export_model, stream_memory
from attakit.nn.blended import StreamStatistics, freeze_blended
from attakit.nn.seeding import seeded
from attakit.nn.source_card import make_card, style_groups
from attakit.nn.styles import StyleGroups
from attakit.testing import tiny_batch, tiny_classifier


def vectors(count, mean=0.0, seed=0):
    random = torch.Generator().manual_seed(seed)
    return mean + 2 * torch.randn(count, 3, generator=random)


def layer_and_stream(source_share=0.5, window=100):
    layer = nn.BatchNorm1d(3).eval()
    layer.running_mean += 1.0
    return layer, StreamStatistics(layer, source_share=source_share, window=window)


def classifier(**settings):
    found = Classifier(tiny_classifier()).eval()
    found.use_norm("blended", **settings)
    return found


def test_statistics_are_a_mix_of_the_stored_ones_and_those_of_the_batch():
    layer, _ = layer_and_stream(source_share=0.75)
    inputs = vectors(64, mean=5.0)
    mean = 0.75 * 1.0 + 0.25 * inputs.mean(0)
    variance = 0.75 * 1.0 + 0.25 * inputs.var(0, unbiased=False)
    expected = (inputs - mean) / (variance + layer.eps).sqrt()
    assert torch.allclose(layer(inputs), expected, atol=1e-5)


def test_single_samples_in_a_row_reach_the_statistics_of_all_of_them():
    layer, stream = layer_and_stream()
    inputs = vectors(50, mean=5.0)
    for row in inputs:
        layer(row[None])
        stream.keep()
    (memory,) = stream.layers
    assert torch.allclose(memory.mean, inputs.mean(0), atol=1e-4)
    assert torch.allclose(memory.variance, inputs.var(0, unbiased=False), atol=1e-3)
    assert float(memory.count) == 50


def test_the_memory_follows_the_stream_and_looks_back_no_further_than_its_window():
    layer, stream = layer_and_stream(window=20)
    for row in (*vectors(100, mean=-9.0), *vectors(100, mean=9.0)):
        layer(row[None])
        stream.keep()
    (memory,) = stream.layers
    assert float(memory.count) == 20
    assert bool((memory.mean > 8).all())


def test_a_batch_as_long_as_the_window_is_on_its_own():
    layer, stream = layer_and_stream(window=32)
    layer(vectors(32, mean=-50.0))
    stream.keep()
    fresh, _ = layer_and_stream(window=32)
    assert torch.equal(layer(vectors(32)), fresh(vectors(32)))


def test_a_few_first_samples_count_little():
    layer, _ = layer_and_stream()
    stored = nn.BatchNorm1d(3).eval()
    stored.running_mean += 1.0
    one = torch.full((1, 3), 100.0)
    assert torch.allclose(layer(one), stored(one), rtol=0.05)


def test_passing_alone_changes_nothing():
    model = classifier()
    before = copy.deepcopy(model.state_dict())
    first, second = model(tiny_batch().inputs), model(tiny_batch().inputs)
    assert torch.equal(first.logits, second.logits)
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    model.keep_statistics()
    assert float(model.stream.layers[0].count) == 8


def test_the_memory_is_saved_with_the_classifier_and_the_models_names_stay():
    model, other = classifier(), classifier()
    model(tiny_batch(0).inputs)
    model.keep_statistics()
    other.load_state_dict(model.state_dict())
    inputs = tiny_batch(1).inputs
    assert torch.equal(model(inputs).logits, other(inputs).logits)
    assert set(model.model.state_dict()) == set(tiny_classifier().state_dict())


def test_a_copy_has_a_memory_of_its_own():
    model = classifier()
    twin = copy.deepcopy(model)
    twin(tiny_batch().inputs)
    twin.keep_statistics()
    assert float(model.stream.layers[0].count) == 0
    assert float(twin.stream.layers[0].count) == 8


@pytest.mark.parametrize("policy", ["frozen", "batch"])
def test_another_policy_ends_the_blend(policy):
    model, plain = classifier(), Classifier(tiny_classifier()).eval()
    model.use_norm(policy)
    plain.use_norm(policy)
    inputs = tiny_batch().inputs
    assert torch.equal(model(inputs).logits, plain(inputs).logits)
    assert set(model.state_dict()) == set(plain.state_dict())


def test_large_maps_are_sampled_on_a_grid():
    layer = nn.BatchNorm2d(2).eval()
    StreamStatistics(layer, source_share=0.0)
    inputs = torch.randn(100, 2, 40, 40, generator=torch.Generator().manual_seed(0)) * 3 + 1
    out = layer(inputs)
    assert torch.allclose(out.mean((0, 2, 3)), torch.zeros(2), atol=0.05)
    assert torch.allclose(out.var((0, 2, 3)), torch.ones(2), atol=0.05)


def test_a_model_without_batch_norm_has_nothing_to_blend():
    model = Classifier(nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 3))).eval()
    inputs = tiny_batch().inputs
    expected = model(inputs).logits
    model.use_norm("blended")
    assert torch.equal(model(inputs).logits, expected)
    model.keep_statistics()


def test_a_frozen_blend_answers_as_the_memory_says_one_sample_at_a_time():
    model = classifier()
    model(tiny_batch(size=100).inputs)
    model.keep_statistics()
    inputs = tiny_batch(1).inputs
    plain = copy.deepcopy(model.model)
    freeze_blended(plain)
    alone = torch.cat([plain(row[None]) for row in inputs])
    assert torch.allclose(plain(inputs), alone, atol=1e-6)
    assert not torch.allclose(plain(inputs), tiny_classifier().eval()(inputs), atol=1e-3)


def test_an_exported_model_has_the_blend_frozen(tmp_path: Path):
    model = Classifier(SmallCNN()).eval()
    model.use_norm("blended")
    model(torch.rand(20, 1, 28, 28, generator=torch.Generator().manual_seed(0)))
    model.keep_statistics()
    facts = ModelFacts("small_cnn", tuple("0123456789"), (1, 28, 28))
    done = export_model(model, tmp_path / "model.pt", facts, form="torchscript")
    assert done.facts.norm == "stored"


def test_a_batch_with_a_number_that_is_far_too_large_does_not_spoil_the_memory():
    model = classifier()
    model(tiny_batch().inputs)
    model.keep_statistics()
    before = [each.clone() for each in model.stream.state_dict().values()]
    broken = tiny_batch(1).inputs.clone()
    broken[0] = 1e30
    model(broken)
    model.keep_statistics()
    assert all(map(torch.equal, model.stream.state_dict().values(), before))
    assert model(tiny_batch(2).inputs).logits.isfinite().all()


def test_a_share_above_one_is_refused():
    with pytest.raises(
        SettingError, match=r"source_share must be at least 0 and at most 1, got 1\.5"
    ):
        classifier(source_share=1.5)


def two_styles(count=40, seed=0):
    """Dark and bright images in turn."""
    random = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 1, 28, 28, generator=random)
    images[1::2] = 8 - images[1::2]
    return images


def small_cnn():
    with seeded(0, "small"):
        return SmallCNN()


def grouped(**settings):
    found = Classifier(small_cnn()).eval()
    found.use_norm("blended", groups=StyleGroups(**settings))
    return found


def test_every_style_of_a_mixed_batch_is_normalised_by_its_own_statistics(monkeypatch):
    monkeypatch.setattr(stream_memory, "_VALUES", 10**6)  # grids of other batches differ
    mixed, dark, bright = grouped(), grouped(most=1), grouped(most=1)
    images = two_styles(80)
    logits = mixed(images).logits
    assert mixed.stream.grouping.members.shape[1] == 2
    assert torch.allclose(logits[0::2], dark(images[0::2]).logits, atol=1e-2)
    assert torch.allclose(logits[1::2], bright(images[1::2]).logits, atol=1e-2)


def test_styles_keep_their_statistics_from_batch_to_batch():
    model = grouped()
    for seed in range(3):
        model(two_styles(seed=seed))
        model.keep_statistics()
    images = two_styles(seed=5)
    together = model(images).logits
    alone = torch.cat([model(image[None]).logits for image in images[:4]])
    assert torch.allclose(alone, together[:4], atol=0.05)


def test_samples_at_home_get_the_source_models_answer():
    plain = Classifier(small_cnn()).eval()
    source, images = two_styles(200)[0::2], two_styles(80, seed=3)
    groups = style_groups(plain, make_card(plain, source), most=4)
    model = Classifier(small_cnn()).eval()
    model.use_norm("blended", groups=groups)
    model(images[1::2])
    model.keep_statistics()
    answers = model(images).logits
    assert torch.allclose(answers[0::2], plain(images[0::2]).logits, atol=1e-3)
    assert not torch.allclose(answers[1::2], plain(images[1::2]).logits, atol=1e-2)


def test_layers_of_a_subclass_keep_what_they_add():
    class WithActivation(nn.BatchNorm2d):
        def forward(self, inputs):
            return super().forward(inputs).relu()

    parts = (nn.Conv2d(1, 4, 3), WithActivation(4), nn.Flatten(), nn.Linear(4 * 26 * 26, 2))
    classifier = Classifier(nn.Sequential(*parts)).eval()
    classifier.use_norm("blended", groups=StyleGroups())
    seen = []
    classifier.model[1].register_forward_hook(lambda _layer, _inputs, out: seen.append(out))
    classifier(two_styles(80))
    assert classifier.stream.grouping.members.shape[1] == 2
    assert float(seen[0].detach().min()) == 0.0


def test_another_policy_ends_the_search_for_styles():
    model = grouped()
    model.use_norm("frozen")
    assert not any(layer._forward_hooks for layer in model.modules())


def test_a_norm_layer_in_front_of_the_first_convolution_has_one_style():
    model = nn.Sequential(nn.BatchNorm2d(1), nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval()
    stream = StreamStatistics(model, groups=StyleGroups())
    for size in (60, 50, 1):
        inputs = torch.randn(size, 1, 8, 8, generator=torch.Generator().manual_seed(size))
        inputs[::2] = 9 - 5 * inputs[::2]
        model(inputs)
        stream.keep()
    assert [int((memory.count > 0).sum()) for memory in stream.layers] == [1, 2]
