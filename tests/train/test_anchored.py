from dataclasses import replace

import pytest
import torch

from attakit.errors import SettingError
from attakit.records import LabelledRows
from attakit.train.anchored import USUAL_PENALTY, ResidualHead
from attakit.train.hedge import USUAL_HEDGE


def anchors(count=40, classes=3, seed=0):
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % classes
    features = torch.nn.functional.normalize(
        torch.eye(classes, 6)[labels] + 0.5 * torch.randn(count, 6, generator=random), dim=1
    )
    return LabelledRows(
        tuple(f"sample-{number}" for number in range(count)),
        torch.zeros(count, 0),
        labels,
        features,
        torch.randn(count, classes, generator=random),
        torch.ones(count),
    )


def test_without_anchors_it_answers_as_the_network():
    head, rows = ResidualHead(), anchors()
    assert torch.equal(head.logits(rows.features, rows.logits), rows.logits)


def test_it_learns_its_anchors():
    head, rows = ResidualHead(), anchors()
    head.fit(rows)
    right = head.logits(rows.features, rows.logits).argmax(1) == rows.labels
    before = rows.logits.argmax(1) == rows.labels
    assert right.float().mean() > 0.9 > before.float().mean()


def test_it_chooses_its_penalty_only_once_there_are_enough_anchors():
    head, rows = ResidualHead(), anchors(count=60)
    head.fit(rows.take(range(20)))
    assert (head.penalty, head.chosen_at) == (USUAL_PENALTY, 0)
    head.fit(rows.take(range(32)))
    head.fit(rows.take(range(40)))  # too few more to choose again
    assert head.chosen_at == 32
    head.fit(rows)
    assert head.chosen_at == 60


def test_a_penalty_that_is_given_stays():
    head = ResidualHead(penalty=0.5)
    head.fit(anchors())
    assert (head.penalty, head.chosen_at) == (0.5, 0)


def test_the_hedge_follows_the_anchors_once_there_are_ten():
    trusted, misled = ResidualHead(), ResidualHead()
    rows = anchors()
    right = torch.nn.functional.one_hot(rows.labels, 3).float()
    random = torch.nn.functional.normalize(rows.logits, dim=1)  # features that say nothing

    trusted.fit(replace(rows, features=random, logits=3 * right).take(range(9)))
    assert trusted.hedge == USUAL_HEDGE
    trusted.fit(replace(rows, features=random, logits=3 * right))
    misled.fit(replace(rows, features=right, logits=3 * right.roll(1, dims=1)))
    assert misled.hedge < USUAL_HEDGE < trusted.hedge


def test_a_hedge_that_is_given_stays():
    head = ResidualHead(hedge=0.5)
    head.fit(anchors())
    assert (head.hedge, head.hedged_at) == (0.5, 0)


def test_a_state_without_a_hedge_keeps_the_usual_one():
    head, other = ResidualHead(), ResidualHead()
    head.fit(anchors())
    old = {name: value for name, value in head.state_dict().items() if not name.startswith("hedge")}

    other.load_state_dict(old)

    assert other.hedge == USUAL_HEDGE
    assert torch.equal(other.weights, head.weights)


def test_refitting_leaves_no_trace_of_what_was_learned_before():
    rows = anchors()
    poisoned = replace(rows, labels=(rows.labels + 1) % 3)
    head, fresh = ResidualHead(), ResidualHead()
    head.fit(poisoned)
    head.refit(rows.take(range(10)))
    fresh.fit(rows.take(range(10)))
    assert torch.equal(head.weights, fresh.weights)
    assert (head.penalty, head.chosen_at) == (fresh.penalty, fresh.chosen_at)
    assert (head.hedge, head.hedged_at) == (fresh.hedge, fresh.hedged_at)
    head.refit(rows.take([]))
    assert head.weights is None


def test_saved_and_loaded_it_continues_bit_for_bit():
    rows = anchors()
    head, other = ResidualHead(), ResidualHead()
    head.fit(rows.take(range(33)))
    other.load_state_dict(head.state_dict())
    head.fit(rows)
    other.fit(rows)
    assert torch.equal(head.weights, other.weights)
    assert head.hedge == other.hedge


@pytest.mark.parametrize("penalty", ["soft", 0, -1.0])
def test_a_wrong_penalty_is_refused(penalty):
    with pytest.raises(SettingError, match="penalty must be"):
        ResidualHead(penalty=penalty)


@pytest.mark.parametrize("hedge", ["half", -0.1, 1.5])
def test_a_wrong_hedge_is_refused(hedge):
    with pytest.raises(SettingError, match="hedge must be"):
        ResidualHead(hedge=hedge)
