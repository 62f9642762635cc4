import torch

from attakit.methods.views import with_anchors
from attakit.records import LabelledRows
from attakit.store.anchors import Anchors
from attakit.targets import Targets
from attakit.train.anchored import ResidualHead


def anchored(weights, labels=(0, 1)):
    """Two anchors whose answers have these weights, and a head fitted to them."""
    known = torch.tensor(labels)
    targets = Targets.of_labels(known, 3, torch.tensor(weights)).to(torch.zeros(0))
    rows = LabelledRows(
        ("a", "b"),
        torch.zeros(2, 0),
        known,
        torch.eye(2),
        torch.tensor([[0.0, 0.0, 2.0], [2.0, 0.0, 0.0]]),
        torch.ones(2),
        targets=targets,
    )
    anchors, head = Anchors(), ResidualHead()
    anchors.add(rows)
    head.fit(rows)
    return anchors, head, head.chances(rows.features, rows.logits)


def neighbours(anchors, head):
    features, chances = with_anchors(anchors, head, torch.zeros(1, 2), torch.full((1, 3), 1 / 3))
    assert torch.equal(features[1:], torch.eye(2))
    return chances[1:]


def test_sure_answers_are_neighbours_with_what_was_said():
    anchors, head, _ = anchored([1.0, 2.0])
    assert torch.equal(neighbours(anchors, head), torch.eye(2, 3))


def test_an_unsure_answer_is_mixed_with_what_the_head_says():
    anchors, head, own = anchored([1.0, 0.25])
    said = neighbours(anchors, head)
    assert torch.equal(said[0], torch.tensor([1.0, 0.0, 0.0]))
    assert torch.allclose(said[1], 0.75 * own[1] + 0.25 * torch.tensor([0.0, 1.0, 0.0]))


def test_an_answer_without_weight_leaves_the_heads_word():
    anchors, head, own = anchored([0.0, 1.0])
    assert torch.allclose(neighbours(anchors, head)[0], own[0])


def test_without_anchors_only_the_given_samples_are_neighbours():
    given = torch.zeros(1, 2), torch.full((1, 3), 1 / 3)
    assert with_anchors(Anchors(), ResidualHead(), *given) == given
