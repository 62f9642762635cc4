import copy

import pytest
import torch

from attakit.errors import SettingError
from attakit.methods import NOTE
from attakit.nn import softmax_entropy
from attakit.queries import Allowance
from attakit.testing import check_method, tiny_batch, tiny_classifier

QUICK = {"lr": 0.1, "update_every": 4, "capacity": 6}


def test_it_keeps_its_promises_while_it_learns():
    check_method(lambda model: NOTE(model, **QUICK))


def test_one_update_is_that_of_a_loop_written_by_hand():
    plain = copy.deepcopy(tiny_classifier()).train()
    plain[1].momentum = 0.3
    batch = tiny_batch()
    softmax_entropy(plain(batch.inputs)).mean().backward()
    method = NOTE(
        tiny_classifier(),
        lr=0.5,
        momentum=0.0,
        optimizer="sgd",
        update_every=8,
        statistics_share=0.3,
    )
    method.step(batch, Allowance(0))

    norm = method.model.model[1]
    assert torch.allclose(norm.weight, 1 - 0.5 * plain[1].weight.grad, atol=1e-6)
    assert torch.allclose(norm.running_mean, plain[1].running_mean, atol=1e-6)
    assert torch.allclose(norm.running_var, plain[1].running_var, atol=1e-6)
    assert norm.momentum == 0.1


def test_it_answers_with_stored_statistics_so_company_does_not_matter():
    method = NOTE(tiny_classifier(), **QUICK)
    method.step(tiny_batch(), Allowance(0))
    inputs = tiny_batch(1).inputs

    together, alone = method.predict(inputs).logits, method.predict(inputs[:1]).logits
    assert torch.allclose(together[:1], alone, atol=1e-6)


def test_forgotten_samples_leave_the_memory():
    method, batch = NOTE(tiny_classifier()), tiny_batch()
    method.step(batch, Allowance(0))
    method.forget(batch.samples[1:])

    assert [each.sample for each in method.memory.kept] == [batch.samples[0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"update_every": 0}, "NOTE: update_every must be at least 1, got 0"),
        ({"statistics_share": 2}, "NOTE: statistics_share must be at least 0 and at most 1"),
        ({"lr": 0}, "NOTE: lr must be greater than 0, got 0"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        NOTE(tiny_classifier(), **settings)
