import math

import torch

from attakit.queries import Answer, Query
from attakit.train.experts import Experts


def judged(experts, count, *right):
    """Label samples of class 0 for which each expert gave that class a probability."""
    first = len(experts.learned)
    for number in range(first, first + count):
        said = torch.tensor([[[share, 1 - share]] for share in right])
        experts.hold([f"s{number}"], said)
        experts.learn([Answer(Query(f"s{number}", 0), 0, "me")])
    return experts


def test_without_labels_the_prior_counts():
    said = torch.tensor([[[0.4, 0.6]], [[1.0, 0.0]]])
    assert torch.allclose(Experts((0.9, 0.1)).average(said), 0.9 * said[0] + 0.1 * said[1])


def test_in_the_other_situation_the_other_prior_counts():
    experts = Experts((0.9, 0.1), (0.2, 0.8))
    assert torch.allclose(experts.weights(other=1.0), torch.tensor([0.2, 0.8]))
    assert torch.allclose(experts.weights(other=0.5), torch.tensor([0.55, 0.45]))


def test_a_saved_state_continues():
    experts, again = judged(Experts((0.9, 0.1)), 3, 0.4, 0.9), Experts((0.9, 0.1))
    experts.hold(["x"], torch.tensor([[[0.3, 0.7]], [[0.6, 0.4]]]))
    again.load_state_dict(experts.state_dict())
    for each in (experts, again):
        each.learn([Answer(Query("x", 0), 1, "me")])
    assert torch.equal(experts.weights(), again.weights())


def test_labels_move_the_weight_to_the_expert_that_foretold_them():
    experts = judged(Experts((0.9, 0.1)), 20, 0.3, 0.8)
    assert experts.weights()[1] > 0.99


def test_the_average_loses_little_to_the_best_expert_however_many_labels_come():
    experts, lost = judged(Experts((0.9, 0.1)), 1, 0.5, 0.5), 0.0
    said = torch.tensor([[[0.5, 0.5]], [[0.7, 0.3]]])
    for _ in range(40):
        lost += float(said[1, 0, 0].log() - experts.average(said)[0, 0].log())
        judged(experts, 1, 0.5, 0.7)
    assert lost <= math.log(1 / 0.1)


def test_old_labels_stop_counting():
    experts = judged(judged(Experts((0.5, 0.5)), 100, 0.9, 0.1), 64, 0.1, 0.9)
    assert experts.weights()[1] > 0.99


def test_an_answer_without_a_class_judges_nobody():
    experts = Experts((0.5, 0.5))
    experts.hold(["a"], torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]))
    experts.learn([Answer(Query("a", 0), None, "me")])
    assert not experts.held
    assert not experts.learned


def test_forgetting_is_exact():
    experts, never = (judged(Experts((0.5, 0.5)), 70, 0.6, 0.7) for _ in range(2))
    experts.hold(["x", "y"], torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]))
    experts.learn([Answer(Query("x", 0), 0, "me")])
    experts.forget(["x", "y"])
    assert torch.equal(experts.weights(), never.weights())
    assert not experts.held
