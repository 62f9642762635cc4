"""Samples in arrays, and domains of samples."""

import numpy as np
import pytest
import torch

from attakit.errors import SettingError, StreamError, UnknownName
from attakit.stream import ArraySamples, Domains, Joined


def two_domains() -> Domains:
    return Domains.from_arrays(
        ("cat", "dog"),
        {
            "day": (np.arange(6.0).reshape(3, 2), [0, 1, 1]),
            "night": (torch.ones(2, 2), torch.tensor([1, 0])),
        },
    )


def test_rows_come_in_the_order_asked_for():
    samples = ArraySamples(np.arange(6.0).reshape(3, 2), [0, 1, 1])

    assert samples.load([2, 0]).tolist() == [[4, 5], [0, 1]]


def test_double_precision_arrives_as_single_and_token_numbers_stay_whole():
    assert ArraySamples(np.zeros((1, 2)), [0]).load([0]).dtype == torch.float32
    assert ArraySamples(torch.zeros(1, 2, dtype=torch.long), [0]).load([0]).dtype == torch.int64


@pytest.mark.parametrize("kind", [torch.from_numpy, np.asarray])
def test_changing_a_loaded_batch_leaves_the_callers_array_alone(kind):
    array = np.zeros((3, 2), dtype=np.float32)
    samples = ArraySamples(kind(array), [0, 0, 0])

    samples.load([0, 1]).fill_(7)

    assert array.tolist() == [[0, 0], [0, 0], [0, 0]]


def test_read_only_reversed_and_big_endian_arrays_load_without_a_warning():
    array = np.arange(4, dtype=">f4").reshape(2, 2)[::-1]
    array.flags.writeable = False

    assert ArraySamples(array, [0, 1]).load([0]).tolist() == [[2, 3]]


def test_a_tensor_that_needs_gradients_gives_inputs_that_do_not():
    samples = ArraySamples(torch.zeros(1, 2, requires_grad=True), [0])

    assert not samples.load([0]).requires_grad


def test_an_array_mapped_from_disk_is_read_row_by_row(tmp_path):
    np.save(tmp_path / "big.npy", np.arange(8, dtype=np.float32).reshape(4, 2))

    samples = ArraySamples(np.load(tmp_path / "big.npy", mmap_mode="r"), [0] * 4)

    assert samples.load([3]).tolist() == [[6, 7]]


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (torch.zeros(3, 2), [0, 1], "got 3 inputs and 2 labels"),
        ([[1.0]], [0], "must be a torch tensor or a NumPy array, got list"),
        (np.array([["a"]]), [0], "must be numbers, got an array of type <U1"),
        (torch.tensor(1.0), [0], "first dimension that counts the samples"),
        (torch.tensor([[0.0], [float("nan")]]), [0, 1], "row 1 holds NaN or infinity"),
        (np.array([np.inf, 0]), [0, 1], "row 0 holds NaN or infinity"),
        (torch.zeros(1, 2), [0.5], "labels must be one row of whole numbers"),
        (torch.zeros(1, 2), [[0]], r"got shape \(1, 1\)"),
    ],
)
def test_malformed_arrays_are_refused(inputs, labels, message):
    with pytest.raises(StreamError, match=message):
        ArraySamples(inputs, labels)


def test_nan_far_down_a_long_array_is_found():
    inputs = torch.zeros(10_000, 1)
    inputs[9_000] = float("inf")

    with pytest.raises(StreamError, match="row 9000"):
        ArraySamples(inputs, [0] * 10_000)


def test_samples_are_named_after_their_domain():
    assert two_domains().parts["night"].names == ("night/0", "night/1")


def test_chosen_domains_keep_the_classes_and_take_the_order_given():
    chosen = two_domains().only("night", "day")

    assert list(chosen.parts) == ["night", "day"]
    assert chosen.classes == ("cat", "dog")


def test_a_domain_that_does_not_exist_gets_the_nearest_name():
    with pytest.raises(UnknownName, match="Did you mean 'night'"):
        two_domains().only("nihgt")


def test_domains_do_not_follow_later_changes_of_the_callers_mapping():
    parts = dict(two_domains().parts)
    domains = Domains(("cat", "dog"), parts)

    parts.clear()

    assert list(domains.parts) == ["day", "night"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "at least one domain"),
        ({"day": (torch.zeros(0, 2), [])}, "'day' has no samples"),
        ({"day": (torch.zeros(1, 2), [2])}, "between 0 and 1 .* but 'day' has 2"),
        ({"day": (torch.zeros(1, 2), [-1])}, "'day' has -1"),
        (
            {"day": (torch.zeros(1, 2), [0]), "dusk": (torch.zeros(1, 3), [0])},
            r"'day' has \(2,\) and 'dusk' has \(3,\)",
        ),
    ],
)
def test_malformed_domains_are_refused(arrays, message):
    with pytest.raises(StreamError, match=message):
        Domains.from_arrays(("cat", "dog"), arrays)


def test_a_name_in_two_domains_is_refused():
    same = ArraySamples(torch.zeros(1, 2), [0])

    with pytest.raises(StreamError, match=r"'0' is in 'day' and in 'night'.*prefix"):
        Domains(("cat",), {"day": same, "night": same})


def test_names_and_labels_of_a_users_own_samples_must_be_equally_many():
    samples = ArraySamples(torch.zeros(2, 2), [0, 0])
    samples.labels = (0,)

    with pytest.raises(StreamError, match="'day' has 2 names but 1 labels"):
        Domains(("cat",), {"day": samples})


@pytest.mark.parametrize(
    ("classes", "message"),
    [("cats", "sequence of names"), ((), "at least one class"), (("a", "a"), "must differ")],
)
def test_malformed_class_names_are_refused(classes, message):
    with pytest.raises(SettingError, match=message):
        Domains(classes, {"day": ArraySamples(torch.zeros(1, 2), [0])})


def part(name, start, count=3):
    values = torch.arange(start, start + count, dtype=torch.float32)[:, None]
    return ArraySamples(values, [start % 2] * count, prefix=f"{name}/")


def test_names_and_labels_of_joined_sets_follow_one_another():
    both = Joined([part("day", 0, count=2), part("night", 5, count=1)])

    assert both.names == ("day/0", "day/1", "night/0")
    assert both.labels == (0, 0, 1)
    assert (len(both), both.shape) == (3, (1,))


def test_samples_come_in_the_order_asked_for_whatever_their_set():
    three = Joined([part("a", 0), part("b", 10), part("c", 20)])

    assert three.load([8, 0, 4, 7, 1, 0]).flatten().tolist() == [22, 0, 11, 21, 1, 0]


def test_nothing_may_be_asked_for_of_joined_sets():
    assert Joined([part("a", 0)]).load([]).shape == (0, 1)


def test_joined_sets_must_have_inputs_of_one_shape():
    wide = ArraySamples(torch.zeros(1, 2), [0])

    with pytest.raises(StreamError, match=r"one shape, got \[\(1,\), \(2,\)\]"):
        Joined([part("a", 0), wide])
    with pytest.raises(StreamError, match="no set"):
        Joined([])
