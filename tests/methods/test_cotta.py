"""CoTTA on cases small enough to follow by hand.

Formulas are those of Wang et al., CVPR 2022, section 3: the consistency loss -Σ q log p, the
teacher θ' ← αθ' + (1 - α)θ, the mean (1/N) Σ f(ζᵢ(x)) over views, and the restoration
W ← M ⊙ W₀ + (1 - M) ⊙ W.
"""

import math

import pytest
import torch
from torch import nn

from attakit.errors import ModelError, SettingError
from attakit.methods import CoTTA, cotta
from attakit.methods.cotta import PUBLISHED_BOUNDS, bound_for
from attakit.nn.seeding import seeded, torch_generator
from attakit.queries import Allowance
from attakit.records import Batch
from attakit.testing import tiny_batch, tiny_classifier


def linear(*, size=2):
    """Logits are the inputs: the weight is the identity."""
    layer = nn.Linear(size, size, bias=False)
    nn.init.eye_(layer.weight)
    return nn.Sequential(layer)


def batch_of(inputs):
    return Batch(0, tuple(f"{number}" for number in range(len(inputs))), inputs)


def weight(classifier):
    return classifier.model[0].weight


def sigmoid(number):
    return 1 / (1 + math.exp(-number))


X = batch_of(torch.tensor([[1.0, 0.0]]))
SIGN = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])


def plain(**settings):
    """A student with weight 0, a teacher and a source with weight I; no views, no momentum."""
    defaults = {"lr": 0.5, "momentum": 0.0, "teacher_momentum": 0.9, "confidence_bound": 0.0}
    method = CoTTA(linear(), **(defaults | {"restore_probability": 0.0} | settings))
    with torch.no_grad():
        weight(method.model).zero_()
    return method


# One sample x = (1, 0), so only first columns of weights matter. For two classes, the gradient of
# the cross-entropy with respect to the logits is (p - q, q - p), p and q being what student and
# teacher give to class 0: σ of the difference of their logits.
# First update: teacher I has q = σ(1), student 0 has p = 1/2, so
#   W₁ = η·d₁·S with d₁ = σ(1) - 1/2 and S = ((1, 0), (-1, 0)),
#   T₁ = α·I + (1 - α)·W₁.
# Second update: the teacher's logits differ by α + 2(1 - α)·η·d₁, the student's by 2·η·d₁, so
#   W₂ = η·(d₁ + d₂)·S with d₂ = σ(α + 2(1 - α)·η·d₁) - σ(2·η·d₁),
#   T₂ = α·T₁ + (1 - α)·W₂.
LR, ALPHA = 0.5, 0.9
D1 = sigmoid(1) - 0.5
D2 = sigmoid(ALPHA + 2 * (1 - ALPHA) * LR * D1) - sigmoid(2 * LR * D1)
W1, W2 = LR * D1 * SIGN, LR * (D1 + D2) * SIGN
T1 = ALPHA * torch.eye(2) + (1 - ALPHA) * W1
T2 = ALPHA * T1 + (1 - ALPHA) * W2


def test_two_updates_of_student_and_teacher_follow_the_equations():
    method = plain()

    method.step(X, Allowance(0))
    assert torch.allclose(weight(method.model), W1)
    assert torch.allclose(weight(method.teacher), T1)

    method.step(X, Allowance(0))
    assert torch.allclose(weight(method.model), W2)
    assert torch.allclose(weight(method.teacher), T2)
    assert torch.equal(weight(method.source_model), torch.eye(2))


def test_two_masks_restore_weights_of_the_student_after_the_teacher_has_followed():
    method = plain(restore_probability=0.5, seed=3)
    masks = [torch.rand(2, 2, generator=torch_generator(3, "restore", n)) < 0.5 for n in (0, 1)]
    assert 0 < int(masks[0].sum()) < 4

    method.step(X, Allowance(0))
    after_first = torch.where(masks[0], torch.eye(2), W1)
    assert torch.allclose(weight(method.model), after_first)
    assert torch.allclose(weight(method.teacher), T1)

    difference = float(after_first[0, 0] - after_first[1, 0])
    teachers = ALPHA + 2 * (1 - ALPHA) * LR * D1
    moved = after_first + LR * (sigmoid(teachers) - sigmoid(difference)) * SIGN
    method.step(X, Allowance(0))
    assert torch.allclose(weight(method.model), torch.where(masks[1], torch.eye(2), moved))
    assert torch.allclose(weight(method.teacher), ALPHA * T1 + (1 - ALPHA) * moved)


def test_about_as_many_weights_are_restored_as_the_probability_says():
    method = CoTTA(linear(size=100), restore_probability=0.3)
    with torch.no_grad():
        weight(method.model).fill_(5.0)

    method.after_update()

    assert float((weight(method.model) != 5).float().mean()) == pytest.approx(0.3, abs=0.02)


def test_the_answer_is_the_teachers_from_before_the_update():
    step = plain().step(X, Allowance(0))

    assert torch.equal(step.prediction.logits, X.inputs)
    assert step.numbers["loss"] == pytest.approx(math.log(2))  # the student said 1/2
    assert step.queries == ()


def test_views_are_averaged_as_probabilities(monkeypatch):
    shifts = iter([0.0, 1.0, 3.0])
    monkeypatch.setattr(
        cotta, "augment", lambda inputs, random, mirror: inputs + torch.tensor([next(shifts), 0.0])
    )
    method = plain(views=3, confidence_bound=1.0)

    step = method.step(X, Allowance(0))

    # The mean over logits (1, 0), (2, 0) and (4, 0).
    mean = (sigmoid(1) + sigmoid(2) + sigmoid(4)) / 3
    expected = torch.tensor([[mean, 1 - mean]])
    assert torch.allclose(step.prediction.logits.exp(), expected)
    assert step.numbers["averaged_views"] == 3
    # The student follows the averaged answer: W₁ = η·(q - 1/2)·S.
    assert torch.allclose(weight(method.model), LR * (mean - 0.5) * SIGN)


# The source model's confidences are σ(2) = 0.881 and σ(3) = 0.953; their mean is 0.917.
@pytest.mark.parametrize(
    ("margins", "bound", "averaged"),
    [
        ([2.0], 0.9, 4),
        ([3.0], 0.9, 0),
        ([2.0, 3.0], 0.91, 0),
        ([2.0, 3.0], 0.92, 4),
        ([3.0], "auto", 4),  # 0.956 for two classes
        ([4.0], "auto", 0),
        ([0.0], 0.5, 0),  # a confidence cannot be below chance
        ([0.0], 0.0, 0),
    ],
)
def test_views_are_averaged_below_the_bound_only(margins, bound, averaged):
    method = CoTTA(linear(), views=4, confidence_bound=bound)
    for changed in (method.model, method.teacher):
        with torch.no_grad():
            weight(changed).mul_(-3)  # it is the source model that counts

    step = method.step(batch_of(torch.tensor([[margin, 0.0] for margin in margins])), 0)

    assert step.numbers["averaged_views"] == averaged
    if bound != 0:
        mean = sum(map(sigmoid, margins)) / len(margins)
        assert step.numbers["source_confidence"] == pytest.approx(mean)


def test_the_bound_passes_through_the_published_ones():
    for classes, bound in PUBLISHED_BOUNDS.items():
        assert bound_for(classes) == pytest.approx(bound)


def test_the_bound_can_be_undercut_at_every_class_count_and_falls_with_it():
    bounds = [bound_for(classes) for classes in range(2, 3000)]

    assert all(1 / classes < bound < 1 for classes, bound in enumerate(bounds, start=2))
    assert bounds == sorted(bounds, reverse=True)


def test_there_are_three_models_and_one_view_in_memory():
    method = CoTTA(tiny_classifier(), confidence_bound=1.0)
    sizes = []
    method.teacher.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))

    method.step(tiny_batch(), Allowance(0))

    assert sum(isinstance(part, nn.Module) for part in vars(method).values()) == 3
    assert sizes == [8] * 33  # the batch itself, and 32 views


def test_what_does_not_train_changes_neither_in_student_nor_in_teacher():
    model = tiny_classifier()
    method = CoTTA(model, trainable="head", lr=0.1, restore_probability=0.5)
    for number in range(3):
        method.step(tiny_batch(number), Allowance(0))

    before = model.state_dict()
    for adapted in (method.model.model, method.adapted_model):
        after = adapted.state_dict()
        changed = {name for name in before if not torch.equal(before[name], after[name])}
        assert changed == {"3.weight", "3.bias"}


def convolutional(channels):
    with seeded(0, "model"):
        return nn.Sequential(
            nn.Conv2d(channels, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 3),
        )


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [0, 1, 4])
def test_images_of_any_number_and_channels_are_answered_and_learned_from(channels, size):
    method = CoTTA(convolutional(channels), views=3, lr=0.1)
    inputs = torch.randn(size, channels, 8, 8, generator=torch_generator(0, "images"))

    for _ in range(2):
        step = method.step(batch_of(inputs), Allowance(0))

    assert step.prediction.logits.shape == (size, 3)
    assert bool(step.prediction.logits.isfinite().all())
    assert method.update_count == (2 if size else 0)
    moved = not torch.equal(weight(method.teacher), weight(method.source_model))
    assert moved == (size > 0)


def test_mirrored_views_can_be_left_out():
    inputs = torch.randn(4, 3, 8, 8, generator=torch_generator(0, "images"))
    answers = [CoTTA(convolutional(3), mirror=mirror).predict(inputs) for mirror in (True, False)]

    assert not torch.equal(answers[0].logits, answers[1].logits)


def test_other_seeds_see_other_views():
    answers = [CoTTA(tiny_classifier(), seed=seed).predict(tiny_batch().inputs) for seed in (0, 1)]

    assert not torch.equal(answers[0].logits, answers[1].logits)


def test_a_loss_that_is_no_number_is_refused():
    method = plain()

    with pytest.raises(ModelError, match=r"CoTTA: the loss became nan\. Lower lr \(now 0\.5\)"):
        method.step(batch_of(torch.full((1, 2), math.nan)), Allowance(0))
    assert torch.equal(weight(method.model), torch.zeros(2, 2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0}, "CoTTA: lr must be greater than 0"),
        ({"momentum": -1}, "CoTTA: momentum must be at least 0"),
        ({"teacher_momentum": 1.5}, "CoTTA: teacher_momentum must be at least 0 and at most 1"),
        ({"restore_probability": 2}, "CoTTA: restore_probability must be at least 0 and at most 1"),
        ({"views": 0}, "CoTTA: views must be at least 1"),
        ({"confidence_bound": 92}, "CoTTA: confidence_bound must be at least 0 and at most 1"),
        ({"confidence_bound": "high"}, "confidence_bound must be a number or 'auto', got 'high'"),
        ({"trainable": "body"}, "which must be all, norm, head or last:N"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        CoTTA(tiny_classifier(), **settings)


def moved(method):
    """How far one step moves the student, which begins equal to its teacher."""
    before = [parameter.clone() for parameter in method.model.parameters()]
    method.step(tiny_batch(), Allowance(0))
    pairs = zip(before, method.model.parameters(), strict=True)
    return max(float((one - other).detach().abs().max()) for one, other in pairs)


def test_without_views_only_the_symmetric_loss_teaches():
    settings = {"lr": 0.1, "confidence_bound": 0.1, "restore_probability": 0.0}

    assert moved(CoTTA(tiny_classifier(), **settings)) < 1e-7
    assert moved(CoTTA(tiny_classifier(), symmetric=True, **settings)) > 1e-3


def test_the_symmetric_loss_is_the_mean_of_both_directions():
    method = plain(symmetric=True)
    student, teacher = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]])
    q = sigmoid(1)
    forwards, backwards = math.log(2), -(math.log(q) + math.log(1 - q)) / 2

    assert float(method._loss(student, teacher)) == pytest.approx((forwards + backwards) / 2)
