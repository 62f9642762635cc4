import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from attakit.errors import LabelError, ModelError, SettingError
from attakit.nn.frozen_head import head_logits
from attakit.targets import Targets
from attakit.train.likelihood import Likelihood, as_equal_rows
from attakit.train.residual_head import choose_penalty, fit_coefficients, fit_head

CLASSES = 4


def rows(count=30, dim=6, seed=0):
    """Labelled points around one centre per class, with logits that know nothing of them."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % CLASSES
    centres = torch.randn(CLASSES, dim, generator=random)
    features = centres[labels] + torch.randn(count, dim, generator=random)
    return features, torch.randn(count, CLASSES, generator=random), labels


def mixed_targets(labels, seed=0):
    """Known, soft and ruled-out classes with different weights."""
    random = torch.Generator().manual_seed(seed)
    known = Targets.of_labels(labels, CLASSES, torch.rand(len(labels), generator=random) + 0.5)
    soft = torch.rand(len(labels), CLASSES, generator=random).double()
    ruled_out = Targets.of_exclusions((labels + 1) % CLASSES, CLASSES)
    third = torch.arange(len(labels)) % 3
    shares = torch.where(third[:, None] == 0, soft / soft.sum(1, keepdim=True), known.shares)
    shares = torch.where(third[:, None] == 1, ruled_out.shares, shares)
    return Targets(shares, known.weights, third == 1)


def loss(features, offsets, targets, weights, penalty):
    """The objective, written out sample by sample."""
    total = 0.5 * penalty * float(weights.square().sum())
    logits = offsets.double() + features.double() @ weights[:-1] + weights[-1]
    chances = logits.exp() / logits.exp().sum(1, keepdim=True)
    for row in range(len(features)):
        share = targets.shares[row]
        if targets.open[row]:
            value = -float(chances[row][share > 0].sum().log())
        else:
            value = -float((share * chances[row].log()).sum())
        total += float(targets.weights[row]) * value
    return total


def test_slopes_and_curvature_are_the_derivatives_of_the_loss():
    _, logits, labels = rows(count=9)
    likelihood, logits = Likelihood.of(mixed_targets(labels)), logits.double().numpy()
    step, way = 1e-6, np.random.default_rng(1).normal(size=logits.shape)

    ahead, behind = likelihood.value(logits + step * way), likelihood.value(logits - step * way)
    slope = (ahead - behind) / (2 * step)
    assert slope == pytest.approx((likelihood.slopes(logits) * way).sum(), rel=1e-6)

    difference = likelihood.slopes(logits + step * way) - likelihood.slopes(logits - step * way)
    hessian, diagonal = likelihood.curvature(logits)
    assert np.allclose(hessian(way), difference / (2 * step), atol=1e-7)
    labels_only = Likelihood.of(Targets.of_labels(labels, CLASSES))
    hessian, diagonal = labels_only.curvature(logits)
    entries = []
    for place in np.ndindex(logits.shape):
        unit = np.zeros_like(logits)
        unit[place] = 1
        entries.append(hessian(unit)[place])
    assert diagonal == pytest.approx(np.mean(entries))


@pytest.mark.parametrize(("count", "dim"), [(30, 6), (12, 40), (1, 3)])
@pytest.mark.parametrize("penalty", [0.01, 1.0])
@pytest.mark.parametrize("kind", ["labels", "mixed"])
def test_no_small_change_of_the_result_lowers_the_loss(count, dim, penalty, kind):
    features, offsets, labels = rows(count, dim)
    known = Targets.of_labels(labels, CLASSES)
    targets = known if kind == "labels" else mixed_targets(labels)
    found = fit_head(features, offsets, targets, penalty=penalty)
    logits = head_logits(features.double(), offsets.double(), found)
    slopes = torch.from_numpy(Likelihood.of(targets).slopes(logits.numpy()))
    with_bias = torch.cat([features, torch.ones(count, 1)], dim=1).double()
    residual = with_bias.T @ slopes + penalty * found
    assert float(residual.abs().max()) < 1e-5
    best = loss(features, offsets, targets, found, penalty)
    random = torch.Generator().manual_seed(2)
    for size in (1e-3, 1e-1):
        other = found + size * torch.randn(found.shape, generator=random).double()
        assert loss(features, offsets, targets, other, penalty) > best


def test_with_zero_offsets_it_is_scikit_learns_logistic_regression():
    features, _, labels = rows(count=40, dim=5)
    offsets = torch.zeros(40, CLASSES)
    penalty = 0.3
    found = fit_head(features, offsets, Targets.of_labels(labels, CLASSES), penalty=penalty)
    with_bias = torch.cat([features, torch.ones(40, 1)], dim=1).double().numpy()
    other = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-10, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        other.fit(with_bias, labels.numpy())
    assert np.allclose(found.numpy().T, other.coef_, atol=1e-4)


def test_a_very_strong_penalty_leaves_the_networks_answer():
    features, offsets, labels = rows()
    weights = fit_head(features, offsets, Targets.of_labels(labels, CLASSES), penalty=1e9)
    assert torch.allclose(head_logits(features, offsets, weights), offsets, atol=1e-5)


def test_where_the_search_begins_does_not_matter():
    features, offsets, labels = rows(count=12, dim=40)
    targets = Targets.of_labels(labels, CLASSES)
    cold = fit_coefficients(features, offsets, targets, penalty=0.1)
    start = torch.randn(9, CLASSES, generator=torch.Generator().manual_seed(3))
    warm = fit_coefficients(features, offsets, targets, penalty=0.1, start=start)
    assert torch.allclose(cold, warm, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(copies=st.integers(1, 4), at=st.integers(0, 11))
def test_a_weight_counts_like_copies_of_the_sample(copies, at):
    features, offsets, labels = rows(count=12)
    weights = torch.ones(12)
    weights[at] = copies
    places = list(range(12)) + [at] * (copies - 1)
    weighted = Targets.of_labels(labels, CLASSES, weights)
    repeated = Targets.of_labels(labels[places], CLASSES)
    one = fit_head(features, offsets, weighted, penalty=0.1)
    other = fit_head(features[places], offsets[places], repeated, penalty=0.1)
    assert torch.allclose(one, other, atol=1e-5)


def test_a_weight_of_zero_leaves_a_sample_out():
    features, offsets, labels = rows(count=12)
    weights = torch.ones(12)
    weights[0] = 0
    one = fit_head(features, offsets, Targets.of_labels(labels, CLASSES, weights), penalty=0.1)
    rest = Targets.of_labels(labels[1:], CLASSES)
    other = fit_head(features[1:], offsets[1:], rest, penalty=0.1)
    assert torch.allclose(one, other, atol=1e-5)


def test_a_class_that_is_ruled_out_loses_its_chances_to_the_others():
    features, offsets = torch.eye(3), torch.zeros(3, 3)
    targets = Targets.of_exclusions(torch.tensor([0, 1, 2]), classes=3)
    weights = fit_head(features, offsets, targets, penalty=0.01)
    chances = head_logits(features, offsets, weights).softmax(1)
    assert bool((chances.diagonal() < 0.1).all())
    others = chances[~torch.eye(3, dtype=torch.bool)]
    assert torch.allclose(others, others.mean().expand(6), atol=1e-3)


def test_no_rows_give_a_head_that_adds_nothing():
    targets = Targets.of_labels(torch.zeros(0, dtype=torch.long), CLASSES)
    weights = fit_head(torch.zeros(0, 5), torch.zeros(0, CLASSES), targets, penalty=1.0)
    assert torch.equal(weights, torch.zeros(6, CLASSES).double())


def cross_validated(features, labels, usual, others):
    targets = Targets.of_labels(labels, CLASSES)
    offsets = torch.zeros(len(features), CLASSES)
    return choose_penalty(features, offsets, targets, usual=usual, others=others)


def test_cross_validation_takes_the_penalty_that_suits_new_samples():
    features, _, labels = rows(count=60, dim=4, seed=5)
    assert cross_validated(features, labels, usual=1e4, others=[1e-4, 1.0]) == 1.0
    features, _, labels = rows(count=60, dim=40)
    shuffled = labels[torch.randperm(60, generator=torch.Generator().manual_seed(0))]
    assert cross_validated(features, shuffled, usual=1e-4, others=[1.0, 1e4]) == 1e4


def test_cross_validation_counts_anchors_by_their_weights():
    features, _, labels = rows(count=60, dim=4, seed=5)
    wrong = (labels + 1) % CLASSES
    both = torch.cat([features, features]), torch.cat([labels, wrong])
    settings = {"usual": 1e4, "others": [1e-4, 1.0]}
    offsets = torch.zeros(120, CLASSES)

    def chosen(weight):
        weights = torch.cat([torch.ones(60), torch.full((60,), weight)])
        targets = Targets.of_labels(both[1], CLASSES, weights)
        return choose_penalty(both[0], offsets, targets, **settings)

    assert [chosen(weight) for weight in (1.0, 0.01, 0.0)] == [1e4, 1.0, 1.0]


def test_anchors_that_all_count_nothing_keep_the_usual_penalty():
    features, offsets, labels = rows(count=60, dim=4, seed=5)
    targets = Targets.of_labels(labels, CLASSES, torch.zeros(60))
    assert choose_penalty(features, offsets, targets, usual=1e4, others=[1.0]) == 1e4


def test_equal_weights_change_no_bit_of_what_is_averaged():
    values = np.random.default_rng(0).normal(size=101)
    for kind in (np.asarray, torch.from_numpy):
        found = as_equal_rows(kind(values), kind(np.ones(101)))
        assert np.array_equal(np.asarray(found), values)


def test_weighted_values_have_the_mean_and_the_error_of_a_weighted_mean():
    random = np.random.default_rng(0)
    values, weights = random.normal(size=40), random.uniform(size=40)
    found = as_equal_rows(values, weights)
    mean = np.average(values, weights=weights)
    error = np.sqrt((weights**2 * (values - mean) ** 2).sum()) / weights.sum()
    assert found.mean() == pytest.approx(mean)
    assert found.std() / 40**0.5 == pytest.approx(error)


def test_the_usual_penalty_stays_where_nothing_clearly_beats_it():
    features, _, labels = rows(count=60, dim=4, seed=5)
    assert cross_validated(features, labels, usual=1.0, others=[1e-4, 1e4]) == 1.0


def test_too_few_anchors_for_cross_validation_get_the_usual_penalty():
    features, _, labels = rows(count=3)
    assert cross_validated(features, labels, usual=1.0, others=[2.0]) == 1.0


def test_bad_arguments_are_refused():
    features, offsets, labels = rows(count=3)
    targets = Targets.of_labels(labels, CLASSES)
    with pytest.raises(SettingError, match="penalty must be greater than 0, got 0"):
        fit_head(features, offsets, targets, penalty=0)
    with pytest.raises(ModelError, match="must be finite"):
        fit_head(features * torch.nan, offsets, targets, penalty=1.0)
    with pytest.raises(LabelError, match="labels must be 0 to 3, got"):
        Targets.of_labels(torch.tensor([4]), CLASSES)
