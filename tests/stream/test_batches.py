"""Streams: batches without labels, from any step on."""

import dataclasses

import numpy as np
import pytest
import torch

from attakit.errors import SettingError, StreamError
from attakit.records import Batch
from attakit.stream import ORDERS, ArraySamples, Domains, Place, Stream, Truth, arrange


class Watched(ArraySamples):
    """Remembers which positions were loaded."""

    def __init__(self, inputs, labels, *, prefix=""):
        super().__init__(inputs, labels, prefix=prefix)
        self.loaded: list[int] = []

    def load(self, positions):
        self.loaded += positions
        return super().load(positions)


def make_domains() -> Domains:
    """Every input tells its domain and position."""
    parts = {
        name: Watched(
            np.stack([np.full(size, number), np.arange(size)], axis=1),
            np.arange(size) % 2,
            prefix=f"{name}/",
        )
        for number, (name, size) in enumerate({"day": 7, "night": 5}.items())
    }
    return Domains(("cat", "dog"), parts)


def make_stream(order: str = "domain_after_domain", batch_size: int = 5) -> Stream:
    domains = make_domains()
    return Stream(domains, arrange(domains, order, seed=1), batch_size=batch_size)


@pytest.mark.parametrize(("size", "lengths"), [(1, [1] * 12), (5, [5, 5, 2]), (50, [12])])
def test_batches_are_as_large_as_asked_and_the_last_keeps_the_rest(size, lengths):
    stream = make_stream(batch_size=size)

    assert [len(batch) for batch in stream] == lengths
    assert len(stream) == len(lengths)


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_each_name_comes_with_its_own_input(order):
    stream = make_stream(order, batch_size=4)

    for batch in stream:
        for sample, (domain, position) in zip(batch.samples, batch.inputs.tolist(), strict=True):
            name = f"{['day', 'night'][int(domain)]}/{int(position)}"
            assert sample.split("@")[0] == name


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_names_are_unique_in_a_run_and_steps_count_up(order):
    batches = list(make_stream(order))

    names = [name for batch in batches for name in batch.samples]
    assert len(set(names)) == len(names)
    assert [batch.step for batch in batches] == list(range(len(batches)))


def test_a_sample_that_comes_back_is_named_by_its_visit():
    stream = make_stream("recurring")

    assert "day/3" in stream.truth.labels
    assert stream.truth.segments["day/3@2"] == "day@2"
    assert stream.truth.domains["day/3@2"] == "day"


@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_a_stream_resumes_at_a_step_with_the_same_batches(start):
    stream = make_stream("random")

    resumed = list(stream.batches(start))

    for one, other in zip(resumed, list(stream)[start:], strict=True):
        assert (one.step, one.samples) == (other.step, other.samples)
        assert torch.equal(one.inputs, other.inputs)


def test_resuming_loads_nothing_of_what_came_before():
    domains = make_domains()
    stream = Stream(domains, arrange(domains), batch_size=7)

    list(stream.batches(1))

    assert domains.parts["day"].loaded == []
    assert sorted(domains.parts["night"].loaded) == [0, 1, 2, 3, 4]


def test_a_batch_is_loaded_when_it_is_asked_for():
    domains = make_domains()

    batches = iter(Stream(domains, arrange(domains), batch_size=2))
    next(batches)

    assert len(domains.parts["day"].loaded) == 2


def test_batches_hold_names_and_inputs_only():
    fields = {field.name for field in dataclasses.fields(Batch)}

    assert fields == {"step", "samples", "inputs"}


def test_truth_knows_label_domain_and_segment_of_every_sample():
    stream = make_stream("random")

    names = {name for batch in stream for name in batch.samples}
    truth = stream.truth
    assert truth.labels.keys() == truth.domains.keys() == truth.segments.keys() == names
    assert (truth.labels["day/3"], truth.domains["night/0"]) == (1, "night")
    assert set(truth.segments.values()) == {"1", "2", "3", "4"}
    assert truth.classes == ("cat", "dog")


def test_channels_last_images_of_two_domains_stay_channels_last():
    image = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
    domains = Domains.from_arrays(("a",), {"x": (image, [0, 0]), "y": (image, [0, 0])})

    batch = next(iter(Stream(domains, arrange(domains, "random"), batch_size=4)))

    assert batch.inputs.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("size", "message"), [(0, "at least 1, got 0"), (2.5, "whole number"), (True, "whole number")]
)
def test_a_batch_size_that_is_no_count_is_refused(size, message):
    with pytest.raises(SettingError, match=f"Stream: batch_size must be .*{message}"):
        make_stream(batch_size=size)


@pytest.mark.parametrize("start", [-1, 4])
def test_a_start_outside_the_stream_is_refused_at_once(start):
    with pytest.raises(SettingError, match=f"Stream: start must be .*at most 3, got {start}"):
        make_stream().batches(start)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ((), "arrangement is empty"),
        ((Place("dawn", 0, "dawn"),), r"sample 0 of 'dawn', .* day \(7 samples\), night"),
        ((Place("day", 7, "day"),), "sample 7 of 'day'"),
        ((Place("day", 1, "day"),) * 2, "'day/1' appears 2 times"),
    ],
)
def test_an_arrangement_that_does_not_fit_is_refused(places, message):
    with pytest.raises(StreamError, match=message):
        Stream(make_domains(), places, batch_size=1)


def test_the_fingerprint_is_of_the_order_and_not_of_the_batches():
    first = make_stream()

    assert first.fingerprint == make_stream(batch_size=3).fingerprint
    assert first.fingerprint != make_stream("random").fingerprint


def test_a_sample_is_the_same_whichever_visit_it_was():
    stream = make_stream("recurring")
    (again,) = [name for name in stream.truth.labels if name == "day/3@2"]

    assert stream.originals({again, "night/1"}) == {"day/3", "night/1"}


def test_truth_must_say_everything_about_every_sample():
    with pytest.raises(StreamError, match="got 1, 2 and 1 of them"):
        Truth({"a": 0}, {"a": "x", "b": "x"}, {"a": "x"}, ("cat",))
