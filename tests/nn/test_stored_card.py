import numpy as np
import pytest
import torch
from torch import nn

from attakit.errors import ModelError
from attakit.nn import SmallCNN
from attakit.nn.source_card import read_or_make_card
from attakit.nn.stored_card import StoredStatistics, stored_statistics
from attakit.nn.styles import StyleGroups

CHANNELS, SPREAD = 4, 0.5


def cloud(count, shift=0.0, seed=0):
    """Style vectors: means of channels around the shift, and log variances around 0."""
    random = torch.Generator().manual_seed(seed)
    rows = SPREAD * torch.randn(count, 2 * CHANNELS, generator=random)
    rows[:, :CHANNELS] += shift
    return rows


def stored():
    """What batch norm would store of a cloud around 0: its variance holds that of the means."""
    inside = np.exp(SPREAD**2 / 2)
    return StoredStatistics(np.zeros(CHANNELS), np.full(CHANNELS, inside + SPREAD**2))


def test_the_guessed_card_is_near_the_true_one():
    found = stored().card(cloud(4000, 5.0).double().numpy(), np.ones((4000, 1)))
    assert np.allclose(found.mean, 0, atol=0.05)
    assert np.allclose(found.covariance, SPREAD**2 * np.eye(2 * CHANNELS), atol=0.03)


def test_distances_between_groups_do_not_widen_the_card():
    rows = torch.cat([cloud(2000, 5.0), cloud(2000, 15.0, seed=1)]).double().numpy()
    members = np.repeat(np.eye(2), 2000, axis=0)
    found = stored().card(rows, members)
    assert np.allclose(found.covariance, SPREAD**2 * np.eye(2 * CHANNELS), atol=0.03)


def test_source_samples_are_at_home_without_source_data():
    groups = StyleGroups(card=stored())
    groups.keep(groups.after(cloud(100, 5.0)))
    home = groups.after(torch.cat([cloud(20, seed=7), cloud(20, 5.0, seed=8)])).home
    assert home[:20].min() > 0.9
    assert home[20:].max() < 0.1


def test_saved_groups_know_the_source():
    groups, other = StyleGroups(card=stored()), StyleGroups(card=stored())
    groups.keep(groups.after(cloud(100, 5.0)))
    other.load_state_dict(groups.state_dict())
    assert torch.equal(other.after(cloud(20)).home, groups.after(cloud(20)).home)


def test_a_model_shows_what_its_first_batch_norm_stored():
    model = SmallCNN()
    model.block1[1].running_mean.fill_(3.0)
    found = stored_statistics(model)
    assert found is not None
    assert np.all(found.mean == 3)


@pytest.mark.parametrize(
    "model",
    [
        nn.Linear(4, 2),
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU()),
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8)),
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, track_running_stats=False)),
    ],
)
def test_without_such_a_layer_the_card_cannot_be_guessed(model):
    assert stored_statistics(model) is None
    with pytest.raises(ModelError, match="Make a card with `attakit card`"):
        read_or_make_card(model, "stored", None)
