"""A user's own iterable as a stream."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from attakit.errors import StreamError
from attakit.stream import from_iterable


def test_unnamed_samples_are_numbered_along_the_whole_stream():
    batches = list(from_iterable([torch.zeros(2, 3), np.zeros((1, 3)), torch.zeros(1, 3)]))

    assert [batch.samples for batch in batches] == [
        ("sample-0", "sample-1"),
        ("sample-2",),
        ("sample-3",),
    ]
    assert [batch.step for batch in batches] == [0, 1, 2]


def test_names_given_are_kept():
    (batch,) = from_iterable([(["a", "b"], np.ones((2, 3)))])

    assert batch.samples == ("a", "b")
    assert batch.inputs.dtype == torch.float32


def test_names_may_be_numbers_or_an_array_of_text():
    numbers, text = from_iterable(
        [([7, 8], torch.zeros(2, 1)), (np.array(["x"]), torch.zeros(1, 1))]
    )

    assert (numbers.samples, text.samples) == (("7", "8"), ("x",))


def test_a_data_loader_over_inputs_alone_works():
    loader = DataLoader(TensorDataset(torch.zeros(5, 2)), batch_size=2)

    assert [len(batch) for batch in from_iterable(loader)] == [2, 2, 1]


def test_an_empty_batch_passes():
    empty, after = from_iterable([torch.zeros(0, 3), torch.zeros(1, 3)])

    assert (len(empty), empty.inputs.shape) == (0, (0, 3))
    assert after.samples == ("sample-0",)


def test_batches_are_read_one_at_a_time():
    def endless():
        while True:
            yield torch.zeros(1, 2)

    stream = from_iterable(endless())

    assert [next(stream).step, next(stream).step] == [0, 1]


def test_the_callers_read_only_array_is_accepted_and_not_shared():
    array = np.zeros((1, 2), dtype=np.float32)
    array.flags.writeable = False

    (batch,) = from_iterable([array])
    batch.inputs.fill_(1)

    assert array.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ("picture.jpg", "batch 0 is a str. Each element must be a tensor or array"),
        ({"inputs": torch.zeros(1)}, "batch 0 is a dict"),
        ([1.0, 2.0, 3.0], "batch 0 is a list"),
        ((["a"], [1.0]), "batch 0 has a list as its inputs"),
        (("ab", torch.zeros(2, 1)), "names must be a sequence, got 'ab'"),
        ((7, torch.zeros(2, 1)), "names must be a sequence, got 7"),
        ((torch.zeros(2, 1), torch.zeros(2)), "Labels do not belong in a stream"),
        ((["a"], torch.zeros(2, 1)), "batch 0 has 1 names for 2 inputs"),
        ((["a", "a"], torch.zeros(2, 1)), "batch 0 uses the name 'a' twice"),
        (torch.tensor(1.0), "batch 0: inputs need a first dimension"),
        (np.array(["a"]), "batch 0: inputs must be numbers"),
        ((["a", "b"], torch.tensor([0.0, float("nan")])), "sample 'b' holds NaN or infinity"),
        (torch.full((1, 2, 2), float("-inf")), "sample 'sample-0' holds NaN or infinity"),
    ],
)
def test_malformed_elements_are_refused_by_step(element, message):
    with pytest.raises(StreamError, match=message):
        list(from_iterable([element]))


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (torch.zeros(100, 1, 28, 28), r"one Tensor of shape \(100, 1, 28, 28\).*split\(32\)"),
        (7, "batches must be an iterable, got int"),
    ],
)
def test_what_is_no_iterable_of_batches_is_refused_at_once(batches, message):
    with pytest.raises(StreamError, match=message):
        from_iterable(batches)
