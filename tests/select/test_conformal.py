import math

import pytest
import torch

from attakit.errors import ModelError, SettingError
from attakit.records import Rows
from attakit.select.conformal import (
    ConformalThreshold,
    LeastCertain,
    certainty,
    conformal_threshold,
)

TENTHS = [number / 10 for number in range(1, 11)]  # 0.1 … 1.0


@pytest.mark.parametrize(
    ("miscoverage", "weight", "expected"),
    [
        # Misses m must keep (w m + 1) / (w n + 1) at most α.
        (0.3, 1.0, 0.3),  # m ≤ 0.3 · 11 - 1 = 2.3: two misses, so the third smallest
        (0.3, 0.5, 0.2),  # m ≤ (0.3 · 6 - 1) / 0.5 = 1.6: one miss
        (0.35, 1e6, 0.4),  # many copies: m ≤ 3.5
        (0.05, 1.0, 0.0),  # not even without misses: 1 / 11 is more than 0.05
        (1.0, 1.0, 1.0),
    ],
)
def test_the_threshold_misses_as_many_as_the_weighted_bound_allows(miscoverage, weight, expected):
    assert conformal_threshold(TENTHS, miscoverage, weight) == expected


@pytest.mark.parametrize("weight", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("miscoverage", [0.1, 0.2, 0.5])
def test_no_higher_threshold_keeps_the_bound(miscoverage, weight):
    scores = torch.rand(57, generator=torch.Generator().manual_seed(0)).tolist()
    found = conformal_threshold(scores, miscoverage, weight)

    def bound(threshold):
        misses = sum(score < threshold for score in scores)
        return (weight * misses + 1) / (weight * len(scores) + 1)

    assert found == 0 or bound(found) <= miscoverage
    assert bound(math.nextafter(max(found, min(scores)), 2)) > miscoverage


def test_without_calibration_samples_every_class_is_in_the_set():
    assert ConformalThreshold().calibrate([]) == 0


def test_weights_follow_the_coverage_of_the_batch_before():
    threshold = ConformalThreshold(miscoverage=0.2)
    shares = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.55, 0.45], [0.5, 0.5]])
    labels = torch.tensor([0, 0, 0, 0])
    threshold.calibrate([0.58] * 40)
    assert (threshold.value, threshold.weight) == (0.58, 0.5)

    assert threshold.observe(shares, labels) == 0.5  # 0.9 and 0.6
    threshold.calibrate([0.58] * 40)
    scale = math.exp(0.8 - 0.5)
    assert (threshold.scale, threshold.weight) == pytest.approx((scale, 0.5 / scale))

    threshold.observe(shares[:1], labels[:1])  # all covered, more than asked for
    threshold.calibrate([0.58] * 40)
    second = scale * math.exp(0.8 - 1.0)
    assert (threshold.scale, threshold.weight) == pytest.approx((second, 0.5 / scale / second))


def test_too_little_coverage_lowers_the_threshold():
    threshold = ConformalThreshold(miscoverage=0.2)
    scores = torch.linspace(0.01, 1, 100).tolist()
    unsure = torch.full((5, 2), 0.001)
    values = []
    for _ in range(8):
        values.append(threshold.calibrate(scores))
        threshold.observe(unsure, torch.zeros(5, dtype=torch.long))

    assert values == sorted(values, reverse=True)
    assert values[0] > 0.1
    assert values[-1] == 0


def test_certainty_averages_the_highest_smoothed_scores():
    shares = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.double)
    scores = [1 / (1 + math.exp(-(share - 0.4) / 0.5)) for share in (0.7, 0.2, 0.1)]

    for top in (1, 2, 3):
        found = certainty(shares, 0.4, temperature=0.5, top=top).item()
        assert found == pytest.approx(sum(scores[:top]) / top)
    assert certainty(shares, 0.4, temperature=0.5, top=9).item() == pytest.approx(sum(scores) / 3)


def test_with_one_score_the_threshold_does_not_matter_and_with_two_it_does():
    shares = torch.tensor([[0.50, 0.49, 0.01], [0.52, 0.24, 0.24]])
    rows = Rows(("torn", "vague"), shares, shares.log(), torch.ones(2))

    def first(threshold, top):
        selector = LeastCertain(threshold, temperature=0.02, top=top)
        return selector.select(rows, rows.take([]), 1, 0).samples

    assert first(0.0, 1) == first(0.9, 1) == ("torn",)
    assert first(0.45, 2) == ("vague",)


def test_logits_that_are_no_numbers_are_refused():
    logits = torch.full((1, 2), math.nan)
    with pytest.raises(ModelError, match="LeastCertain: logits must be finite"):
        LeastCertain().select(Rows(("a",), logits, logits, torch.ones(1)), _NOTHING, 1, 0)


_NOTHING = Rows((), torch.zeros(0, 2), torch.zeros(0, 2), torch.zeros(0))


def test_a_miscoverage_outside_its_range_is_refused():
    with pytest.raises(SettingError, match="miscoverage"):
        ConformalThreshold(miscoverage=0)
