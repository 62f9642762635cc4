import numpy as np
import pytest
import torch

from attakit.errors import SettingError
from attakit.nn.gaussians import Card
from attakit.nn.styles import StyleGroups, style_vectors
from attakit.testing.methods import same_state


def cloud(count, shift=0.0, seed=0):
    return shift + torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))


def shuffled(*clouds):
    rows = torch.cat(clouds)
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))]


def follow(groups, batches):
    """Feed batches, and say at which a new style came."""
    novel = []
    for number, batch in enumerate(batches):
        found = groups.after(batch)
        groups.keep(found)
        if found.novel:
            novel.append(number)
    return novel


def test_one_cloud_is_one_group():
    groups = StyleGroups()
    assert follow(groups, [cloud(50, seed=seed) for seed in range(20)]) == []
    assert len(groups.state.groups.weights) == 1


@pytest.mark.parametrize("size", [1, 10, 90])
def test_three_mixed_clouds_are_three_groups_at_any_batch_size(size):
    rows = shuffled(cloud(120), cloud(120, 9.0, seed=1), cloud(120, -9.0, seed=2))
    groups = StyleGroups()
    follow(groups, rows.split(size))
    members = groups.after(rows).members
    assert members.shape[1] == 3
    signs = rows.mean(dim=1).div(9).round()
    for group in range(3):
        assert len(set(signs[members[:, group] > 0.5].tolist())) == 1


def test_memberships_add_up_to_one():
    groups = StyleGroups()
    rows = shuffled(cloud(60), cloud(60, 4.0, seed=1))
    assert torch.allclose(groups.after(rows).members.sum(dim=1), torch.ones(120))


def test_a_new_cloud_after_another_is_novel_once():
    before = [cloud(50, seed=seed) for seed in range(5)]
    after = [cloud(50, 9.0, seed=seed) for seed in range(5, 10)]
    assert follow(StyleGroups(), [*before, *after]) == [5]


def test_new_groups_say_which_old_ones_they_come_from():
    groups = StyleGroups()
    follow(groups, [cloud(100)])
    found = groups.after(cloud(100, 9.0, seed=1))
    assert found.moved.shape == (2, 1)
    assert torch.allclose(found.moved.sum(), torch.tensor(200.0))


def test_with_one_group_at_most_nothing_is_looked_for():
    found = StyleGroups(most=1).after(shuffled(cloud(60), cloud(60, 9.0, seed=1)))
    assert torch.equal(found.members, torch.ones(120, 1))


def test_with_a_card_samples_of_the_source_are_at_home():
    card = Card.of(cloud(200, seed=5).double().numpy())
    groups = StyleGroups(card=card)
    follow(groups, [cloud(100, 5.0)])
    home = groups.after(torch.cat([cloud(20, seed=7), cloud(20, 5.0, seed=8)])).home
    assert home[:20].min() > 0.9
    assert home[20:].max() < 0.1


def test_a_stream_of_source_samples_is_at_home():
    groups = StyleGroups(card=Card.of(cloud(200, seed=5).double().numpy()))
    follow(groups, [cloud(50, seed=seed) for seed in range(6)])
    assert groups.after(cloud(50, seed=9)).home.min() > 0.9


def test_without_a_card_nothing_is_at_home():
    groups = StyleGroups()
    assert not groups.after(cloud(100)).home.any()


def test_what_is_not_kept_changes_nothing():
    groups = StyleGroups()
    follow(groups, [cloud(50)])
    before = groups.state_dict()
    groups.after(cloud(50, 9.0))
    assert same_state(groups.state_dict(), before)


def test_stored_samples_are_found_in_the_known_groups_without_a_search():
    groups = StyleGroups()
    rows = shuffled(cloud(120), cloud(120, 9.0, seed=1))
    found = groups.after(rows)
    groups.keep(found)
    before = groups.state_dict()

    stored = groups.recall(cloud(400, 30.0, seed=2))  # `after` would begin a third group

    assert stored.members.shape == (400, 2)
    assert stored.moved is None
    assert not stored.novel
    assert same_state(groups.state_dict(), before)
    assert torch.equal(groups.recall(rows).members, found.members)


def test_before_the_first_search_stored_samples_are_of_one_style():
    assert StyleGroups().recall(cloud(3)).is_plain


def test_saved_and_loaded_it_goes_on_the_same():
    groups, other = StyleGroups(), StyleGroups()
    other.load_state_dict(groups.state_dict())
    assert other.state is None
    follow(groups, [shuffled(cloud(60), cloud(60, 9.0, seed=1))])
    other.load_state_dict(groups.state_dict())
    more = cloud(30, 9.0, seed=2)
    assert torch.equal(groups.after(more).members, other.after(more).members)
    follow(groups, [more])
    follow(other, [more])
    assert same_state(groups.state_dict(), other.state_dict())


def test_the_memory_is_bounded_and_forgets_named_samples():
    groups = StyleGroups(window=40)
    for part in range(3):
        rows = cloud(30, seed=part)
        groups.keep(groups.after(rows), [f"{part}/{place}" for place in range(30)])
    assert groups.state.memory.shape[0] == len(groups.samples) == 40
    groups.forget({"2/0", "2/29", "0/0"})
    assert groups.state.memory.shape[0] == len(groups.samples) == 38
    assert torch.equal(groups.state.memory[-1], rows[28])


@pytest.mark.parametrize(("lasting", "expected"), [(False, 1), (True, 2)])
def test_a_lasting_memory_keeps_a_style_that_is_over(lasting, expected):
    groups = StyleGroups(window=120, lasting=lasting)
    before = [cloud(50, seed=seed) for seed in range(6)]
    after = [cloud(50, 9.0, seed=seed) for seed in range(6, 12)]
    assert follow(groups, [*before, *after]) == [6]
    assert len(groups.state.groups.weights) == expected


def test_a_lasting_memory_forgets_named_samples():
    groups = StyleGroups(window=42, lasting=True)
    rows = cloud(150)
    for start in range(0, 150, 30):
        part = rows[start : start + 30]
        groups.keep(groups.after(part), [str(start + place) for place in range(30)])
    assert torch.equal(groups.state.memory, rows[[int(name) for name in groups.samples]])
    assert groups.samples[-14:] == tuple(map(str, range(136, 150)))
    first = groups.samples[0]
    groups.forget({first, "149"})
    assert not {first, "149"} & set(groups.samples)
    assert torch.equal(groups.state.memory, rows[[int(name) for name in groups.samples]])


def test_a_style_is_the_mean_and_log_variance_of_each_channel():
    activations = torch.randn(3, 4, 5, 6, generator=torch.Generator().manual_seed(0))
    found = style_vectors(activations)
    assert torch.allclose(found[:, :4], activations.mean((2, 3)))
    assert torch.allclose(found[:, 4:], activations.var((2, 3), correction=0).log(), atol=1e-6)


def test_flat_activations_have_a_finite_style():
    assert bool(style_vectors(torch.zeros(2, 3, 4, 4)).isfinite().all())


def test_absurd_samples_stop_nothing():
    groups = StyleGroups()
    rows = shuffled(cloud(60), cloud(60, 9.0, seed=1))
    rows[3], rows[7] = float("inf"), float("nan")
    follow(groups, [rows, cloud(50)])
    assert bool(groups.after(cloud(50, seed=3)).members.isfinite().all())


def test_no_group_at_all_is_refused():
    with pytest.raises(SettingError, match="most must be"):
        StyleGroups(most=0)


def test_a_card_has_the_covariance_of_its_rows():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    assert np.allclose(Card.of(rows).covariance, np.cov(rows.T, bias=True))
