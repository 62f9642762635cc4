import numpy as np
import pytest
import torch
from torch import nn

from attakit.errors import ModelError
from attakit.nn import SmallCNN
from attakit.nn.source_card import SourceCard, card_file, load_card, make_card, save_card
from attakit.nn.styles import style_vectors


def images(count):
    return torch.rand(count, 1, 28, 28, generator=torch.Generator().manual_seed(0))


def test_a_card_describes_what_the_first_convolution_says(tmp_path):
    model = SmallCNN().eval()
    first = next(layer for layer in model.modules() if isinstance(layer, nn.Conv2d))
    card = make_card(model, images(120))
    with torch.no_grad():
        styles = style_vectors(first(images(120)))
    assert np.allclose(card.styles.mean, styles.mean(dim=0), atol=1e-4)


def test_a_card_describes_the_input_of_a_deeper_layer():
    model, given = SmallCNN().eval(), images(120)
    with torch.no_grad():
        features = model.block2(model.block1(given)).flatten(2).mean(dim=2)
    card = make_card(model, given)
    assert card.layer == "block3.0"
    assert np.allclose(card.deeper.mean, features.mean(dim=0), atol=1e-4)
    assert np.allclose(card.deeper.covariance, np.cov(features.T, bias=True), atol=1e-4)


def test_a_model_with_one_convolution_has_no_deeper_layer():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 26 * 26, 2))
    assert make_card(model, images(10)).deeper is None


def test_a_written_card_reads_as_it_was(tmp_path):
    card = make_card(SmallCNN().eval(), images(60))
    path = card_file(tmp_path / "digits.safetensors")
    save_card(card, path)
    found = load_card(path)
    for read, written in ((found.styles, card.styles), (found.deeper, card.deeper)):
        assert np.allclose(read.mean, written.mean)
        assert np.allclose(read.covariance, written.covariance, atol=1e-5)
    assert found.layer == card.layer
    assert path.stat().st_size < 15_000


def test_a_card_of_an_earlier_version_has_no_second_look(tmp_path):
    card, path = make_card(SmallCNN().eval(), images(60)), tmp_path / "old.card.safetensors"
    save_card(SourceCard(card.styles), path)
    assert load_card(path).deeper is None


def test_making_a_card_leaves_no_hook_in_the_model():
    model = SmallCNN().eval()
    make_card(model, images(10))
    assert not any(layer._forward_hooks for layer in model.modules())


def test_a_model_in_training_mode_gets_the_same_card_and_stays_as_it_is():
    model = SmallCNN().eval()
    expected = make_card(model, images(20))
    before = {name: each.clone() for name, each in model.state_dict().items()}
    found = make_card(model.train(), images(20))
    assert np.array_equal(found.deeper.mean, expected.deeper.mean)
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
    assert model.training


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (images(0), r"got \(0, 1, 28, 28\)"),
        (images(1), "at least 2, better a few hundred"),
        (images(5).numpy(), "must be a tensor .* got ndarray"),
        (images(5).repeat(1, 3, 1, 1), "failed on inputs of shape"),
        (images(5) * torch.nan, "NaN or infinity"),
    ],
)
def test_inputs_that_describe_nothing_are_refused(inputs, message):
    with pytest.raises(ModelError, match=message):
        make_card(SmallCNN().eval(), inputs)


def test_a_card_is_a_safetensors_file(tmp_path):
    card = make_card(SmallCNN().eval(), images(20))
    save_card(card, str(tmp_path / "new" / "digits.card.safetensors"))
    assert load_card(tmp_path / "new" / "digits.card.safetensors").layer == card.layer
    with pytest.raises(ModelError, match=r"ending \.safetensors"):
        save_card(card, tmp_path / "digits.card")


def test_a_model_without_convolutions_has_no_card():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    with pytest.raises(ModelError, match="no convolution"):
        make_card(model, torch.rand(10, 4))


@pytest.mark.parametrize("content", [None, b"no card"])
def test_a_card_that_cannot_be_read_says_how_to_make_one(tmp_path, content):
    path = tmp_path / "lost.card.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match="Make one with `attakit card`"):
        load_card(path)
