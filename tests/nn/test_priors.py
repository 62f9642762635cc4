import pytest
import torch

from attakit.nn.priors import batch_prior, correct_prior


def test_the_prior_is_smoothed_as_worked_out_by_hand():
    # Probabilities (0.8, 0.2) and (0.4, 0.6): mean (0.6, 0.4), s = max(1/2, 1/2)/0.6 = 0.8333,
    # so (0.6 + s)/(1 + 2s) = 0.5375 and (0.4 + s)/(1 + 2s) = 0.4625.
    logits = torch.tensor([[0.8, 0.2], [0.4, 0.6]]).log()

    assert batch_prior(logits).tolist() == pytest.approx([0.5375, 0.4625])


def test_even_classes_change_nothing():
    logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]])

    for how in ("logits", "probabilities", "none"):
        assert torch.allclose(correct_prior(logits, how), logits, atol=1e-6)


def test_frequent_classes_win_ties():
    logits = torch.tensor([[3.0, 0.0], [3.0, 0.0], [1.0, 1.0]])

    for how in ("logits", "probabilities"):
        assert correct_prior(logits, how)[2, 0] > correct_prior(logits, how)[2, 1]


def test_an_empty_batch_stays_empty():
    assert correct_prior(torch.zeros(0, 3), "logits").shape == (0, 3)
