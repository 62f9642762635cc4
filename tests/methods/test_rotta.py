import pytest
import torch
import torch.nn.functional as F

from attakit.errors import SettingError
from attakit.methods import RoTTA, SourceOnly
from attakit.queries import Allowance
from attakit.testing import check_method, tiny_batch, tiny_classifier

QUICK = {"lr": 0.1, "update_every": 4, "capacity": 6, "teacher_share": 0.5}


def test_it_keeps_its_promises_while_it_learns():
    check_method(lambda model: RoTTA(model, **QUICK))


def test_before_the_first_update_it_answers_as_the_source_model():
    inputs = tiny_batch().inputs

    assert torch.equal(
        RoTTA(tiny_classifier()).predict(inputs).logits,
        SourceOnly(tiny_classifier()).predict(inputs).logits,
    )


def test_updates_follow_the_number_of_samples_not_of_batches():
    method = RoTTA(tiny_classifier(), update_every=12)
    updates = [
        method.step(tiny_batch(number), Allowance(0)).numbers["updates"] for number in range(6)
    ]

    assert updates == [0, 1, 1, 0, 1, 1]


def test_the_loss_weighs_young_samples_more():
    # Without views (noise of a constant batch is zero) student and teacher see the same four
    # equal inputs, so every sample has the same loss: the entropy of the teacher's answer. Ages are
    # 1 to 4 in a memory of 4: weights 1/(1 + e^(age/4)), by hand 0.438, 0.378, 0.321, 0.269.
    method = RoTTA(tiny_classifier(), update_every=4, capacity=4, entropy_weight=0.0)
    batch = tiny_batch(size=4)
    batch.inputs[:] = 1.0
    loss = method.step(batch, Allowance(0)).numbers["loss"]

    model = SourceOnly(tiny_classifier()).model.model
    hidden = model[0](batch.inputs)
    mean, variance = 0.05 * hidden.mean(0), 0.95 + 0.05 * hidden.var(0, correction=0)
    normal = (hidden - mean) / (variance + model[1].eps).sqrt()
    shares = model[3](F.relu(normal)).softmax(dim=1)
    entropy = -(shares * shares.log()).sum(dim=1).mean().item()
    count = len(method.memory)
    weights = [0.438, 0.378, 0.321, 0.269][:count]
    assert loss == pytest.approx(entropy * sum(weights) / count, rel=2e-3)


def test_the_teacher_moves_a_share_of_the_way_to_the_student():
    method = RoTTA(tiny_classifier(), **QUICK)
    start = method.teacher.model[1].weight.detach().clone()
    method.step(tiny_batch(size=4), Allowance(0))

    student = method.model.model[1].weight
    assert not torch.equal(student, start)
    assert torch.allclose(method.teacher.model[1].weight, (start + student) / 2)
    assert torch.equal(method.teacher.model[0].weight, tiny_classifier()[0].weight)


def test_statistics_of_teacher_and_student_follow_the_memory():
    method = RoTTA(tiny_classifier(), update_every=8, statistics_share=0.5, capacity=24)
    batch = tiny_batch()
    method.step(batch, Allowance(0))

    hidden = tiny_classifier()[0](method.memory.inputs)
    expected = 0.5 * hidden.mean(dim=0)
    assert torch.allclose(method.teacher.model[1].running_mean, expected, atol=1e-5)
    assert not torch.equal(method.model.model[1].running_mean, torch.zeros(8))


def test_forgotten_samples_leave_the_memory():
    method, batch = RoTTA(tiny_classifier()), tiny_batch()
    method.step(batch, Allowance(0))
    method.forget(batch.samples[:6])

    assert {each.sample for each in method.memory.kept} == set(batch.samples[6:])


def test_it_learns_from_single_samples():
    method = RoTTA(tiny_classifier(), **QUICK)
    for number in range(8):
        step = method.step(tiny_batch(number, size=1), Allowance(0))
    assert step.numbers["updates"] == 1
    assert not torch.equal(method.trained[0], tiny_classifier()[1].weight)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"update_every": 0}, "RoTTA: update_every must be at least 1, got 0"),
        ({"statistics_share": 2}, "RoTTA: statistics_share must be at least 0 and at most 1"),
        ({"teacher_share": -1}, "RoTTA: teacher_share must be at least 0 and at most 1"),
        ({"optimizer": "rms"}, "RoTTA: optimizer must be one of sgd, adam, got 'rms'"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        RoTTA(tiny_classifier(), **settings)
