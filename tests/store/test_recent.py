import pytest
import torch

from attakit.errors import SettingError
from attakit.store.recent import Recent
from attakit.testing.methods import same_state


def filled(capacity=3, count=5):
    recent = Recent(capacity=capacity)
    for number in range(count):
        row = torch.full((1, 2), float(number))
        recent.add((f"sample-{number}",), row, row)
    return recent


def kept(recent):
    return recent.all(torch.zeros(0, 2), torch.zeros(0, 2))[0][:, 0].tolist()


def test_the_oldest_make_room():
    recent = filled()
    assert recent.samples == ("sample-2", "sample-3", "sample-4")
    assert kept(recent) == [2.0, 3.0, 4.0]


def test_without_capacity_nothing_is_kept():
    assert len(filled(capacity=0)) == 0
    assert kept(filled(capacity=0)) == []


def test_samples_can_be_forgotten_one_by_one_or_all():
    recent = filled()
    recent.forget({"sample-3", "unknown"})
    assert recent.samples == ("sample-2", "sample-4")
    assert kept(recent) == [2.0, 4.0]
    recent.clear()
    assert len(recent) == 0
    assert kept(recent) == []


def test_it_is_saved_and_loaded():
    recent, other = filled(), Recent(capacity=3)
    other.load_state_dict(recent.state_dict())
    assert same_state(recent.state_dict(), other.state_dict())
    assert kept(other) == kept(recent)


def test_a_negative_capacity_is_refused():
    with pytest.raises(SettingError, match="capacity"):
        Recent(capacity=-1)
