"""BADGE's embeddings and distances, against the outer products themselves."""

import numpy as np
import pytest
import torch
from torch import nn

from attakit.errors import ModelError
from attakit.records import Rows
from attakit.select import BADGE
from attakit.select.badge import Gradients, seed_plus_plus


def draw(count=9, classes=4, dim=5):
    random = torch.Generator().manual_seed(0)
    return (
        torch.randn(count, classes, generator=random) * 2,
        torch.randn(count, dim, generator=random),
    )


def rows(logits, features):
    names = tuple(f"p{number}" for number in range(len(logits)))
    return Rows(names, features, logits, torch.ones(len(logits)))


NOTHING = Rows((), torch.zeros(0, 5), torch.zeros(0, 4), torch.zeros(0))


def last_layer_gradients(logits, features):
    """Equation 1 by automatic differentiation: cross-entropy with the prediction as its label."""
    found = []
    for one_logits, one_features in zip(logits.double(), features.double(), strict=True):
        # A last layer that maps these features to these logits: its bias says it all.
        weight = torch.zeros(len(one_logits), len(one_features), dtype=torch.double)
        answer = weight.requires_grad_() @ one_features + one_logits
        nn.functional.cross_entropy(answer[None], answer.argmax()[None]).backward()
        found.append(weight.grad.flatten())
    return torch.stack(found)


def test_distances_are_those_of_the_gradients_of_the_last_layer():
    logits, features = draw()
    explicit = last_layer_gradients(logits, features)  # (rows, classes · dim)
    gradients = Gradients(logits, features)

    for row in range(len(logits)):
        wanted = (explicit - explicit[row]).square().sum(dim=1)
        torch.testing.assert_close(gradients.squared_distances(row), wanted)
    torch.testing.assert_close(gradients.squares, explicit.square().sum(dim=1))


def test_nothing_as_large_as_the_outer_products_is_kept():
    gradients = Gradients(*draw(count=9, classes=40, dim=50))
    sizes = [value.numel() for value in vars(gradients).values() if isinstance(value, torch.Tensor)]

    assert max(sizes) == 9 * 50


def test_draws_follow_the_squared_distance_from_the_nearest_drawn():
    logits, features = draw(count=4)
    explicit = last_layer_gradients(logits, features)
    gradients = Gradients(logits, features)
    counts = np.zeros((4, 4))
    repeats = 4000

    for seed in range(repeats):
        first, second = seed_plus_plus(gradients, 2, np.random.default_rng(seed))
        counts[first, second] += 1

    squares = (explicit[:, None] - explicit).square().sum(dim=2).numpy()
    wanted = squares / squares.sum(axis=1, keepdims=True) / 4  # the first with equal chances
    assert counts / repeats == pytest.approx(wanted, abs=0.03)


def test_a_group_of_copies_is_visited_once_before_any_copy_comes_again():
    logits = torch.zeros(6, 4)
    features = torch.eye(3, 5).repeat_interleave(2, dim=0)

    for seed in range(5):
        chosen = BADGE(seed=seed).select(rows(logits, features), NOTHING, 6, 0).samples
        groups = [int(name[1:]) // 2 for name in chosen]
        assert sorted(groups[:3]) == [0, 1, 2]
        assert len(set(chosen)) == 6


def test_sure_samples_are_drawn_last():
    # Their gradients vanish, so once one of them is drawn all of them count as seen.
    logits = torch.tensor([[200.0, 0, 0, 0]] * 8 + [[0.0, 0, 0, 0]] * 2)
    _, features = draw(count=10)

    chosen = BADGE().select(rows(logits, features), NOTHING, 3, 0).samples

    assert {"p8", "p9"} < set(chosen)


def test_steps_and_seeds_draw_differently():
    candidates = rows(*draw(count=50))
    choices = {
        BADGE(seed=seed).select(candidates, NOTHING, 5, step).samples
        for seed in range(3)
        for step in range(3)
    }

    assert len(choices) == 9


@pytest.mark.parametrize("part", ["logits", "features"])
def test_a_diverged_model_is_named(part):
    numbers = dict(zip(("logits", "features"), draw(), strict=True))
    numbers[part][0, 0] = float("nan")

    with pytest.raises(ModelError, match=r"BADGE: .*diverged"):
        BADGE().select(rows(**numbers), NOTHING, 10, 0)
