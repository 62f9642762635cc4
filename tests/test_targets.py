"""What people say becomes a likelihood, and rows that carry it can be stored and joined."""

import math

import pytest
import torch

from attakit.queries import Answer, Query
from attakit.records import UNKNOWN, LabelledRows
from attakit.targets import Targets
from attakit.train.answers import answer_loss

QUERY = Query("a", 0, proposed=0)
LOGITS = torch.tensor([[0.5, 0.3, 0.2]]).log()


def loss_of(**said):
    answer = Answer(QUERY, said.pop("label", None), "me", **said)
    targets = Targets.of_answers([answer], 3)
    return float(targets.weights @ targets.losses(LOGITS.double()))


@pytest.mark.parametrize(
    ("said", "likelihood"),
    [
        ({"label": 1}, 0.3),
        ({"excluded": (0,)}, 0.5),
        ({"excluded": (0, 1)}, 0.2),
        ({"among": (0, 2)}, 0.7),
        ({"chances": (0.0, 1.0, 0.0)}, 0.3),
        ({"label": 1, "weight": 2.0}, 0.3**2),
    ],
)
def test_the_loss_is_the_negative_logarithm_of_the_likelihood(said, likelihood):
    assert loss_of(**said) == pytest.approx(-math.log(likelihood), rel=1e-6)


def test_a_soft_answer_is_cross_entropy_with_shares_that_add_up_to_one():
    expected = -0.75 * math.log(0.5) - 0.25 * math.log(0.2)

    assert loss_of(chances=(3.0, 0.0, 1.0)) == pytest.approx(expected, rel=1e-6)


def rows(names, labels, targets=None):
    empty = torch.zeros(len(names), 3)
    weights = torch.ones(len(names))
    return LabelledRows(names, empty, torch.tensor(labels), empty, empty, weights, targets=targets)


def no(kind):
    return Targets.of_exclusions(torch.tensor([kind]), 3).to(torch.zeros(1))


def test_joined_rows_keep_labels_and_exclusions_apart():
    joined = rows(("a",), [2]).join(rows(("b",), [UNKNOWN], no(1)))

    assert joined.targets.shares.tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
    assert joined.targets.open.tolist() == [False, True]
    assert joined.take([1]).targets.shares.tolist() == [[1.0, 0.0, 1.0]]


def test_rows_with_targets_come_back_from_a_saved_state():
    saved = rows(("a",), [UNKNOWN], no(1)).state_dict()

    again = LabelledRows.from_state(saved)

    assert again.targets.shares.tolist() == [[1.0, 0.0, 1.0]]
    assert "targets" not in rows(("a",), [1]).state_dict()


def test_only_plain_labels_are_left_for_what_learns_from_labels_alone():
    answers = [Answer(QUERY, 1, "me"), Answer.no(QUERY, "me"), Answer(QUERY, 2, "me", weight=0.5)]
    targets = Targets.of_answers(answers, 3)

    left = rows(("a", "b", "c"), [1, UNKNOWN, 2], targets).only_labelled()

    assert (left.samples, left.labels.tolist(), left.targets) == (("a",), [1], None)


def test_the_loss_on_labels_is_plain_cross_entropy():
    logits = torch.tensor([[1.0, 2.0, 0.5], [0.0, 0.0, 3.0]])
    some = rows(("a", "b"), [1, 0])

    assert answer_loss(logits, some) == torch.nn.functional.cross_entropy(logits, some.labels)


def test_the_loss_of_mixed_rows_is_their_mean_with_weights():
    answers = [Answer(QUERY, 0, "me"), Answer(QUERY, None, "me", excluded=(0,), weight=0.5)]
    some = rows(("a", "b"), [0, UNKNOWN], Targets.of_answers(answers, 3).to(LOGITS))

    loss = answer_loss(LOGITS.repeat(2, 1), some)

    assert loss.item() == pytest.approx((-math.log(0.5) - 0.5 * math.log(0.5)) / 2)


def test_a_no_pushes_the_probability_of_its_class_down_even_where_it_is_one():
    logits = torch.tensor([[200.0, 0.0, 0.0]], requires_grad=True)
    answer_loss(logits, rows(("a",), [UNKNOWN], no(0))).backward()

    assert logits.grad.tolist() == [[1.0, -0.5, -0.5]]
