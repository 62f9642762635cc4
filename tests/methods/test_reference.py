"""SimATTA as in its public code: the numbers of the settings that imitated it before."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from attakit.engine.loop import answer, learn
from attakit.label import Budget, Callback, Ledger
from attakit.methods.reference import (
    ReferenceClustering,
    ReferenceSimATTA,
    ReferenceTrainer,
    RepeatedSelection,
)
from attakit.queries import Allowance, Answer
from attakit.records import Selection
from attakit.testing import check_method, tiny_batch, tiny_classifier
from given_clusters import Given, rows

# By step: questions, labelled and source-like anchors, updates, sum of logits, loss of both halves,
# weight of the labelled anchors. Recorded at seed 110; the third step has a tie between two
# members of a cluster, which the earlier sample wins.
RECORDED: Sequence[tuple[str, int, int, int, float, float, float, float]] = (
    (
        "0-24 0-2 0-0 0-4 0-25 0-29 0-5 0-8 0-18 0-23",
        10,
        5,
        50,
        -13.408277,
        1.052498,
        0.103007,
        30.0,
    ),
    ("1-28", 11, 10, 50, -14.305542, 0.95137, 0.114641, 68.0),
    ("2-11", 12, 15, 50, -13.082379, 1.213083, 0.08264, 104.0),
    ("3-16 3-2", 14, 20, 50, -14.600132, 0.754016, 0.100658, 140.0),
    ("4-5 4-11", 16, 23, 42, -17.580286, 0.738322, 0.039519, 180.0),
    ("", 16, 26, 50, -17.5259, 0.572714, 0.036921, 221.0),
)


def test_the_numbers_are_those_of_the_settings_that_imitated_the_public_code():
    method = ReferenceSimATTA(
        tiny_classifier(),
        low_entropy_bound=0.9,
        high_entropy_bound=0.5,
        low_entropy_limit=5,
        max_updates=50,
        seed=110,
    )
    ledger, oracle = Ledger(Budget(None)), Callback(lambda name: sum(name.encode()) % 3)
    for number, recorded in enumerate(RECORDED):
        batch = tiny_batch(number, size=30)
        batch = replace(batch, inputs=3 * batch.inputs)
        step, seconds = answer(batch, method, ledger.budget.allowance)
        training = learn(batch, step, seconds, method, oracle, ledger).training

        anchors = method.high_entropy_anchors.rows
        assert " ".join(query.sample for query in step.queries) == recorded[0]
        assert (len(anchors), len(method.low_entropy_anchors)) == recorded[1:3]
        assert training.updates == recorded[3]
        numbers = (
            float(step.prediction.logits.sum()),
            training.numbers["loss_high"],
            training.numbers["loss_low"],
            float(anchors.weights.sum()),
        )
        assert numbers == pytest.approx(recorded[4:], rel=1e-4)


def given_clusters(*labels):
    selector = ReferenceClustering()
    selector.clustering = Given(*labels)
    return selector


def test_anchors_count_in_the_gain_of_their_cluster():
    known = rows([7.0, 2.0, 3.0], b=(1, 0), f=(10, 0), k=(1, 20))
    five = rows(m=(9, 0), n=(100, 100), o=(101, 100), p=(102, 100), q=(100, -100))

    selection = ReferenceClustering(initial_clusters=4).select(five, known, limit=10, step=0)

    # b and f share three members, m and themselves; k gains itself.
    assert selection.weights == {"b": 8.5, "f": 3.5, "k": 4, "o": 3, "q": 1}


# A new cluster of two (x, y) whose centroid (0, 0) lies nearest to z, which is in another cluster.
astride = {"x": (-10, 0), "y": (11, 0), "w": (0, 3)}


def test_a_cluster_whose_centroid_is_nearest_to_a_known_sample_is_passed_over():
    selection = given_clusters(1, 0, 0, 1).select(rows(**astride), rows(z=(0, 2)), 5, step=0)

    assert selection.samples == ()
    assert selection.weights == {"z": 3}


def test_a_cluster_may_ask_about_a_member_of_another_cluster():
    selection = given_clusters(1, 0, 0, 1).select(rows(**astride), rows(z=(0, 50)), 5, step=0)

    assert selection.samples == ("w",)
    assert selection.weights == {"z": 3, "w": 2}


# Clusters {s, t} and {u, v, v2} share a middle, where w lies; w is in a third, old cluster.
crossed = {"s": (-5, 0), "t": (5, 0), "u": (0, -6), "v": (0, 3), "v2": (0, 3), "w": (0, 0)}


def test_two_clusters_may_choose_one_sample_which_gets_their_mean_weight():
    selector = given_clusters(2, 0, 0, 1, 1, 1, 2)

    selection = selector.select(rows(**crossed), rows(z=(0, 90)), limit=1, step=0)

    assert isinstance(selection, RepeatedSelection)
    assert (selection.samples, selection.order) == (("w",), ("w", "w"))
    assert selection.weights["w"] == 2.5


def test_a_new_cluster_of_known_names_alone_is_passed_over():
    selection = given_clusters(0, 1).select(rows(a=(9, 9)), rows(a=(0, 0)), limit=5, step=0)

    assert selection.samples == ()


class FirstTwice:
    """Chooses the first two candidates, the first one for two clusters."""

    def select(self, candidates, known, limit, step):
        first, second = candidates.samples[:2]
        weights = {first: 2.5, second: 3.0}
        return RepeatedSelection((first, second), weights, {}, (first, second, first))


def repeating():
    method = ReferenceSimATTA(tiny_classifier(), high_entropy_bound=0.0, max_updates=1)
    method.selector = FirstTwice()
    return method


def test_a_sample_of_two_clusters_is_asked_once_and_stored_twice():
    method = repeating()
    step = method.step(tiny_batch(), Allowance(10))
    assert [query.sample for query in step.queries] == ["0-0", "0-1"]

    method.learn([Answer(query, 1, "me") for query in step.queries])

    anchors = method.high_entropy_anchors.rows
    assert anchors.samples == ("0-0", "0-1", "0-0 (copy 1)")
    assert anchors.weights.tolist() == [2.5, 3.0, 2.5]
    assert method.chosen == []


def test_skipped_and_late_answers_find_their_copies():
    method = repeating()
    first, second = method.step(tiny_batch(), Allowance(10)).queries

    method.learn([Answer(second, None, "me")])
    assert method.chosen == ["0-0", "0-0"]
    restored = repeating()
    restored.load_state_dict(method.state_dict())
    restored.learn([Answer(first, 1, "me")])

    assert restored.high_entropy_anchors.rows.samples == ("0-0", "0-0 (copy 1)")


def test_a_forgotten_sample_is_gone_with_its_copies():
    method = repeating()
    for number in range(2):
        step = method.step(tiny_batch(number), Allowance(10))
        method.learn([Answer(query, 1, "me") for query in step.queries])
    method.step(tiny_batch(2), Allowance(10))

    method.forget(["0-0", "2-0"])

    assert method.high_entropy_anchors.rows.samples == ("0-1", "1-0", "1-1", "1-0 (copy 1)")
    assert method.chosen == ["2-1"]


def test_an_asked_sample_is_trusted_too_and_at_most_the_limit_of_a_batch():
    method = ReferenceSimATTA(
        tiny_classifier(), low_entropy_bound=2.0, high_entropy_bound=0.0, low_entropy_limit=3
    )

    asked = {query.sample for query in method.step(tiny_batch(), Allowance(10)).queries}

    trusted = method.low_entropy_anchors.rows.samples
    assert len(trusted) == 3
    assert asked & set(trusted)


def test_limits_per_class_hold_even_though_copies_are_lost():
    method = ReferenceSimATTA(tiny_classifier(), high_entropy_bound=0.0)
    step = method.step(tiny_batch(), Allowance(10, per_class={0: 1, 1: 1, 2: 1}))

    assert step.choice is not None
    assert type(step.choice.selection) is Selection
    assert method.chosen == [query.sample for query in step.queries]


def test_mini_batches_are_drawn_with_replacement_the_last_of_a_pass_smaller():
    batches = ReferenceTrainer(batch_size=4)._batches(10, np.random.default_rng(0))
    assert [len(batch) for batch in islice(batches, 6)] == [4, 4, 2, 4, 4, 2]

    (batch,) = islice(ReferenceTrainer(batch_size=50)._batches(50, np.random.default_rng(0)), 1)
    assert len(set(batch.tolist())) < 50


def test_the_reference_keeps_the_promises_of_methods():
    check_method(
        lambda model: ReferenceSimATTA(
            model, low_entropy_bound=2.0, high_entropy_bound=0.0, inits=1, max_updates=3
        )
    )
