import math

import pytest
import torch

from attakit.errors import SettingError
from attakit.methods import CMF, ROID
from attakit.methods.roid import likelihood_ratio
from attakit.queries import Allowance
from attakit.records import Batch
from attakit.testing import check_method, tiny_batch, tiny_classifier
from one_layer import one_layer

# Batch norm, then the identity, on (1, 2) and (3, 0): x̂ = (-1, 1) and (1, -1). With scale γ = 1 and
# shift β = 0 these are the logits. Both samples are equally diverse and equally sure, so both
# weights are e⁰ = 1. The loss is the mean of -Σ p log(p/(1-p)); of two classes p/(1-p) = e^(z₁-z₂),
# so for one sample it is -(2p - 1)·d with d = |z₁ - z₂| = 2γ and p = 1/(1 + e^-d).
# Its derivative by d is -((2p - 1) + 2p(1 - p)·d), and ∂d/∂γ₁ = ∂d/∂γ₂ = 1.
INPUTS = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
P = 1 / (1 + math.exp(-2))
SLOPE = -((2 * P - 1) + 2 * P * (1 - P) * 2)


def step(method):
    return method.step(Batch(0, ("a", "b"), INPUTS), Allowance(0))


def test_one_update_follows_the_gradient_worked_out_by_hand():
    method = ROID(one_layer(2), lr=0.5, momentum=0.0, consistency=False, source_share=0.0)
    result = step(method)

    assert result.numbers["loss"] == pytest.approx(-(2 * P - 1) * 2, abs=1e-4)
    assert torch.allclose(method.trained[0], torch.full((2,), 1 - 0.5 * SLOPE), atol=1e-4)


def test_after_an_update_a_share_of_the_source_is_mixed_in():
    method = ROID(one_layer(2), lr=0.5, momentum=0.0, consistency=False, source_share=0.25)
    step(method)

    assert torch.allclose(method.trained[0], torch.full((2,), 1 - 0.75 * 0.5 * SLOPE), atol=1e-4)


def test_the_likelihood_ratio_of_a_sure_answer_still_has_a_gradient():
    logits = torch.tensor([[4.0, 0.0]], requires_grad=True)
    likelihood_ratio(logits).sum().backward()

    assert logits.grad[0, 0] < -0.5


def test_weights_leave_out_what_is_less_diverse_than_the_mean():
    # The average is even, (1/3, 1/3, 1/3). Its cosine with one sure answer is nearly 1/√3, with an
    # even answer 1: so diversity is 1 for the first and 0 for the second. Certainty as well.
    method = ROID(tiny_classifier())
    weights = method._weights(torch.tensor([[50.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))

    assert weights.tolist() == pytest.approx([math.exp(3), 0.0], rel=1e-4)
    # 0.9 of the even average, 0.1 of the mean of (1, 0, 0) and (1/3, 1/3, 1/3).
    expected = [0.9 / 3 + 0.1 * 2 / 3, 0.9 / 3 + 0.1 / 6, 0.9 / 3 + 0.1 / 6]
    assert method.average.tolist() == pytest.approx(expected, rel=1e-4)


def test_the_view_takes_part_in_the_loss():
    one, other = (ROID(tiny_classifier(), lr=0.1, consistency=on) for on in (True, False))
    losses = [method.step(tiny_batch(), Allowance(0)).numbers["loss"] for method in (one, other)]

    assert losses[0] > losses[1]


@pytest.mark.parametrize("how", ["logits", "probabilities"])
def test_answers_and_predictions_are_corrected_alike_and_weights_are_not(how):
    plain, corrected = (ROID(tiny_classifier(), prior_correction=h) for h in ("none", how))
    batch = tiny_batch()
    before = plain.predict(batch.inputs).logits, corrected.predict(batch.inputs).logits
    answers = [method.step(batch, Allowance(0)).prediction.logits for method in (plain, corrected)]

    assert not torch.allclose(*before)
    assert torch.allclose(answers[1], before[1], atol=1e-6)
    assert torch.equal(plain.trained[0], corrected.trained[0])


def test_the_filter_of_cmf_follows_formulas_worked_out_by_hand():
    # With q = 0.1 the first variance is q, so β = 0.9/(0.1 + 0.9) = 0.9, which leaves 0.09. The
    # second is 0.25·0.09 + 0.1 = 0.1225, so β = 0.9/1.0225 = 0.8802, which is raised to 0.89.
    method = CMF(one_layer(2), noise=1.0, transition=0.5, hidden_share=0.25)
    method.noise = 0.1
    with torch.no_grad():
        method.trained[0].fill_(2.0)  # the source has 1
    method.after_update()

    # Hidden: pulled to the source it stays 1, then 0.9·1 + 0.1·2 = 1.1. Model: 0.75·2 + 0.25·1.1.
    assert method.hidden.values[0].tolist() == pytest.approx([1.1, 1.1])
    assert method.trained[0].tolist() == pytest.approx([1.775, 1.775])
    assert method.variance == pytest.approx(0.09)
    method.after_update()
    assert method.variance == pytest.approx(0.89 * 0.1225)
    # Hidden: half way to the source, 1.05, then 0.89·1.05 + 0.11·1.775.
    assert method.hidden.values[0][0].item() == pytest.approx(0.89 * 1.05 + 0.11 * 1.775)


def test_the_noise_of_cmf_is_scaled_to_the_model():
    assert CMF(one_layer(2), noise=0.005).noise == pytest.approx(0.005 * 4 / 38_400)


def test_cmf_with_noise_as_small_as_that_is_roid():
    one, other = CMF(tiny_classifier(), lr=0.1, noise=0.0), ROID(tiny_classifier(), lr=0.1)
    for number in range(3):
        for method in (one, other):
            method.step(tiny_batch(number), Allowance(0))

    assert torch.allclose(one.trained[0], other.trained[0])


@pytest.mark.parametrize("kind", [ROID, CMF])
def test_it_keeps_its_promises_while_it_learns_fast(kind):
    check_method(lambda model: kind(model, lr=0.1, optimizer="adam", prior_correction="none"))


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (ROID, {"temperature": 0}, "ROID: temperature must be greater than 0, got 0"),
        (ROID, {"source_share": 2}, "ROID: source_share must be at least 0 and at most 1, got 2"),
        (ROID, {"prior_correction": "odds"}, "ROID: prior_correction must be one of logits, "),
        (CMF, {"transition": 2}, "CMF: transition must be at least 0 and at most 1, got 2"),
        (CMF, {"noise": -1}, "CMF: noise must be at least 0 and at most 1, got -1"),
    ],
)
def test_wrong_settings_are_named(kind, settings, message):
    with pytest.raises(SettingError, match=message):
        kind(tiny_classifier(), **settings)
