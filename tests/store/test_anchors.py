from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from attakit.errors import SettingError
from attakit.records import LabelledRows, Prediction
from attakit.store.anchors import Anchors
from attakit.store.stored_rows import REFRESH_BATCH


def rows(*names, label=0, weight=1.0):
    count = len(names)
    inputs = torch.arange(float(count)).reshape(count, 1)
    return LabelledRows(
        names,
        inputs,
        torch.full((count,), label),
        inputs.clone(),
        torch.zeros(count, 2),
        torch.full((count,), weight),
    )


def test_anchors_without_capacity_keep_everything_in_order():
    anchors = Anchors()

    anchors.add(rows("a", "b"))
    anchors.add(rows("c"))

    assert anchors.rows.samples == ("a", "b", "c")
    assert len(anchors) == 3
    assert anchors.seen == 3


def test_a_sample_added_again_replaces_its_earlier_self():
    anchors = Anchors()
    anchors.add(rows("a", "b", label=0))

    anchors.add(rows("a", "c", label=1))

    assert dict(zip(anchors.rows.samples, anchors.rows.labels.tolist(), strict=True)) == {
        "a": 1,
        "b": 0,
        "c": 1,
    }


def test_of_a_name_given_twice_at_once_the_last_counts():
    anchors = Anchors()

    anchors.add(rows("a", "b", "a"))

    assert sorted(anchors.rows.samples) == ["a", "b"]
    assert anchors.rows.inputs[anchors.rows.samples.index("a")].item() == 2.0


def test_adding_a_stored_sample_again_evicts_nothing():
    anchors = Anchors(capacity=3)
    anchors.add(rows("a", "b", "c"))

    for _ in range(20):
        anchors.add(rows("b", label=1))

    assert anchors.rows.samples == ("a", "b", "c")
    assert anchors.rows.labels.tolist() == [0, 1, 0]
    assert anchors.seen == 3


def test_adding_nothing_changes_nothing():
    anchors = Anchors(capacity=2)

    anchors.add(rows())

    assert len(anchors) == 0
    assert "a" not in anchors


def test_anchors_know_what_they_contain():
    anchors = Anchors()

    anchors.add(rows("a"))

    assert "a" in anchors
    assert "b" not in anchors


def test_the_reservoir_is_a_uniform_draw_from_all_that_was_added():
    kept = Counter()
    rounds, stream, capacity = 400, 12, 3

    for seed in range(rounds):
        anchors = Anchors(capacity=capacity, seed=seed)
        for start in range(0, stream, 4):
            anchors.add(rows(*(f"{number}" for number in range(start, start + 4))))
        kept.update(anchors.rows.samples)

    expected = rounds * capacity / stream
    spread = (expected * (1 - capacity / stream)) ** 0.5
    assert len(kept) == stream
    assert all(abs(count - expected) < 4 * spread for count in kept.values())


@given(
    capacity=some.integers(1, 5),
    parts=some.lists(some.lists(some.sampled_from("abcdefgh"), max_size=6), max_size=6),
)
def test_anchors_never_exceed_their_capacity_and_never_repeat_a_name(capacity, parts):
    anchors = Anchors(capacity=capacity)

    for part in parts:
        anchors.add(rows(*part))

    distinct = {name for part in parts for name in part}
    assert len(anchors) == min(capacity, len(distinct))
    if len(anchors):
        assert len(set(anchors.rows.samples)) == len(anchors)
        assert set(anchors.rows.samples) <= distinct


def test_the_draw_depends_on_the_seed_alone():
    def drawn(seed):
        anchors = Anchors(capacity=4, seed=seed)
        anchors.add(rows(*map(str, range(50))))
        return anchors.rows.samples

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_what_is_handed_over_is_gone_and_the_draw_begins_anew():
    anchors, untouched = Anchors(capacity=2), Anchors(capacity=2)
    anchors.add(rows("a", "b", "c", "d"))

    handed = anchors.hand_over()

    assert len(handed) == 2
    assert len(anchors) == 0
    assert anchors.hand_over() is None
    for store in (anchors, untouched):
        store.add(rows("e", "f", "g", "h"))
    assert anchors.rows.samples == untouched.rows.samples


def test_samples_that_are_not_drawn_leave_what_is_stored_alone():
    anchors = Anchors(capacity=1)
    anchors.add(rows("a"))
    anchors.seen = 10**9
    stored = anchors.rows

    anchors.add(rows("b"))

    assert anchors.rows is stored


def test_reweight_changes_only_the_samples_named():
    anchors = Anchors()
    anchors.add(rows("a", "b"))

    anchors.reweight({"b": 4.5, "stranger": 9.0})

    assert anchors.rows.weights.tolist() == [1.0, 4.5]


def test_refresh_computes_features_and_logits_anew_in_bounded_batches():
    anchors = Anchors()
    names = tuple(map(str, range(REFRESH_BATCH + 5)))
    anchors.add(rows(*names, weight=2.0))
    sizes = []

    def predict(inputs):
        sizes.append(len(inputs))
        return Prediction(logits=inputs.repeat(1, 2), features=inputs * 10)

    anchors.refresh(predict)

    assert sizes == [REFRESH_BATCH, 5]
    assert torch.equal(anchors.rows.features, anchors.rows.inputs * 10)
    assert torch.equal(anchors.rows.logits, anchors.rows.inputs.repeat(1, 2))
    assert anchors.rows.weights.unique().tolist() == [2.0]


@pytest.mark.parametrize("count", [1, REFRESH_BATCH, REFRESH_BATCH + 1])
def test_refresh_never_sends_a_single_sample_through_the_model(count):
    anchors = Anchors()
    anchors.add(rows(*map(str, range(count))))
    sizes = []

    def predict(inputs):
        sizes.append(len(inputs))
        return Prediction(logits=inputs.repeat(1, 2), features=inputs * 10)

    anchors.refresh(predict)

    assert min(sizes) > 1
    assert torch.equal(anchors.rows.features, anchors.rows.inputs * 10)


def test_empty_anchors_accept_reweight_and_refresh():
    anchors = Anchors()

    anchors.reweight({"a": 1.0})
    anchors.refresh(lambda inputs: pytest.fail("nothing to predict"))

    assert len(anchors) == 0


@pytest.mark.parametrize("names", [(), ("a", "b", "c", "d")])
def test_restored_anchors_continue_like_unbroken_ones(names):
    unbroken = Anchors(capacity=3, seed=5)
    unbroken.add(rows(*names))
    restored = Anchors(capacity=3, seed=5)
    restored.load_state_dict(unbroken.state_dict())

    for anchors in (unbroken, restored):
        anchors.add(rows(*"efghij", label=2, weight=3.0))

    assert restored.rows.samples == unbroken.rows.samples
    assert torch.equal(restored.rows.inputs, unbroken.rows.inputs)
    assert torch.equal(restored.rows.labels, unbroken.rows.labels)
    assert torch.equal(restored.rows.weights, unbroken.rows.weights)
    assert restored.seen == unbroken.seen


def test_a_saved_state_does_not_change_when_anchors_are_added_later():
    anchors = Anchors(capacity=2)
    anchors.add(rows("a", "b"))
    state = anchors.state_dict()

    anchors.add(rows("a", label=7))
    anchors.reweight({"a": 5.0})

    assert state["rows"]["labels"].tolist() == [0, 0]
    assert state["rows"]["weights"].tolist() == [1.0, 1.0]


def test_a_capacity_below_one_is_refused():
    with pytest.raises(SettingError, match="Anchors: capacity must be at least 1, got 0"):
        Anchors(capacity=0)
