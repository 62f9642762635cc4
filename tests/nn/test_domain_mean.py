import pytest
import torch

from attakit.nn.domain_mean import DomainMean
from attakit.testing.methods import same_state


def rows(count, shift=0.0, seed=0):
    return shift + torch.randn(count, 5, generator=torch.Generator().manual_seed(seed))


def follow(tracker, batches):
    """Feed batches, and say at which a new domain began."""
    alarms, domains = [], 1
    for number, batch in enumerate(batches):
        tracker.keep(tracker.after(batch))
        if tracker.state.domains > domains:
            alarms.append(number)
            domains = tracker.state.domains
    return alarms


def test_a_jump_of_the_mean_begins_a_domain_and_chance_does_not():
    calm = [rows(50, seed=seed) for seed in range(20)]
    after = [rows(50, shift=3.0, seed=seed) for seed in range(20, 40)]
    assert follow(DomainMean(), [*calm, *after]) == [20]


@pytest.mark.parametrize("size", [1, 7, 32])
def test_batches_of_any_size_show_a_jump_within_a_few_of_its_samples(size):
    stream = torch.cat([rows(320, seed=2), rows(320, shift=3.0, seed=3)])
    tracker = DomainMean()
    (alarm,) = follow(tracker, stream.split(size))
    assert 320 <= (alarm + 1) * size <= 320 + 72
    assert torch.allclose(tracker.state.centre, torch.full((5,), 3.0), atol=0.5)


def test_a_small_last_batch_is_no_new_domain():
    assert follow(DomainMean(), [*(rows(100, seed=seed) for seed in range(9)), rows(33)]) == []


def test_the_first_samples_are_hardly_centred():
    tracker = DomainMean()
    tracker.keep(tracker.after(rows(1, shift=100.0)))
    assert float(tracker.state.centre.max()) < 4.0


def test_with_many_samples_the_centre_is_their_mean():
    tracker = DomainMean()
    given = rows(100, shift=2.0)
    tracker.keep(tracker.after(given))
    assert torch.allclose(tracker.state.centre, given.mean(0))
    more = rows(100, shift=2.0, seed=1)
    tracker.keep(tracker.after(more))
    assert torch.allclose(tracker.state.centre, torch.cat([given, more]).mean(0), atol=1e-6)


def test_what_is_not_kept_changes_nothing():
    tracker = DomainMean()
    tracker.keep(tracker.after(rows(50)))
    before = tracker.state_dict()
    tracker.after(rows(50, shift=9.0))
    assert same_state(tracker.state_dict(), before)


def test_saved_and_loaded_it_goes_on_the_same():
    tracker, other = DomainMean(), DomainMean()
    other.load_state_dict(tracker.state_dict())
    assert other.state is None
    follow(tracker, [rows(20, seed=seed) for seed in range(5)])
    other.load_state_dict(tracker.state_dict())
    follow(tracker, [rows(20, seed=9)])
    follow(other, [rows(20, seed=9)])
    assert same_state(tracker.state_dict(), other.state_dict())
