import pytest
import torch

from attakit.errors import StreamError
from attakit.stream import ArraySamples, Joined


def part(name, start, count=3):
    values = torch.arange(start, start + count, dtype=torch.float32)[:, None]
    return ArraySamples(values, [start % 2] * count, prefix=f"{name}/")


def test_names_and_labels_follow_one_another():
    both = Joined([part("day", 0, count=2), part("night", 5, count=1)])

    assert both.names == ("day/0", "day/1", "night/0")
    assert both.labels == (0, 0, 1)
    assert (len(both), both.shape) == (3, (1,))


def test_samples_come_in_the_order_asked_for_whatever_their_set():
    three = Joined([part("a", 0), part("b", 10), part("c", 20)])

    assert three.load([8, 0, 4, 7, 1, 0]).flatten().tolist() == [22, 0, 11, 21, 1, 0]


def test_nothing_may_be_asked_for():
    assert Joined([part("a", 0)]).load([]).shape == (0, 1)


def test_inputs_must_have_one_shape():
    wide = ArraySamples(torch.zeros(1, 2), [0])

    with pytest.raises(StreamError, match=r"one shape, got \[\(1,\), \(2,\)\]"):
        Joined([part("a", 0), wide])
    with pytest.raises(StreamError, match="no set"):
        Joined([])
