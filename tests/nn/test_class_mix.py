import pytest
import torch

from attakit.nn.class_mix import MixChanges, with_class_mix


def test_a_batch_of_one_class_pulls_its_unsure_samples_along():
    chances = torch.tensor([[0.8, 0.2]] * 30 + [[0.4, 0.6]])
    assert with_class_mix(chances).argmax(dim=1).tolist() == [0] * 31


def test_a_balanced_batch_keeps_its_answers():
    chances = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.6, 0.4], [0.4, 0.6]] * 5)
    assert torch.allclose(with_class_mix(chances), chances, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1])
def test_a_batch_may_be_tiny(count):
    found = with_class_mix(torch.tensor([[0.4, 0.6]])[:count])
    assert found.argmax(dim=1).tolist() == [1] * count


def answers(share, size=50):
    """Unsure answers to a batch with a share of the first of three classes."""
    first = round(share * size)
    rows = [[0.7, 0.2, 0.1]] * first + [[0.1, 0.6, 0.3]] * (size - first)
    return torch.tensor(rows)


def after(*shares):
    changes = MixChanges()
    for share in shares:
        changes.keep(answers(share))
    return changes


def test_batches_of_one_mix_are_no_sign_of_runs():
    changes = after(0.5, 0.45, 0.55, 0.4, 0.6, 0.5)
    assert changes.probability(answers(0.45)) < 0.02


def test_a_model_that_gives_one_class_only_is_no_sign_of_runs():
    assert after(*[1.0] * 8).probability(answers(1.0)) < 0.02


def test_long_runs_are_found_although_most_batches_are_like_the_one_before():
    assert after(*[1.0] * 4, *[0.0] * 4, *[1.0] * 4, *[0.0] * 4).probability(answers(1.0)) > 0.9


def test_one_new_mix_proves_little():
    assert after(*[0.9] * 6, *[0.1] * 6).probability(answers(0.1)) < 0.2


def test_the_first_batch_of_a_domain_says_nothing():
    changes = after(*[0.9] * 6)
    before = sum(changes.evidence)
    changes.new_domain()
    changes.keep(answers(0.1))
    assert sum(changes.evidence) == before


def test_looking_at_a_batch_changes_nothing():
    changes = after(0.9, 0.1)
    assert changes.probability(answers(0.9)) == changes.probability(answers(0.9))
    assert len(changes.evidence) == 2


def test_a_saved_state_continues():
    changes, again = after(0.9, 0.1, 0.9), MixChanges()
    again.load_state_dict(changes.state_dict())
    assert again.probability(answers(0.1)) == changes.probability(answers(0.1))
