"""With a window, methods that need a batch work on single samples too."""

import pytest
import torch

from attakit.errors import SettingError
from attakit.methods import (
    CMF,
    EATA,
    LAME,
    ROID,
    SAR,
    BatchNorm,
    CoTTA,
    DeYO,
    Enhanced,
    RDumb,
    Tent,
)
from attakit.queries import Allowance
from attakit.records import Batch
from attakit.select import LabelRate
from attakit.testing import check_method, tiny_batch, tiny_classifier

# With settings in which they learn from a few random vectors.
WINDOWED = {
    "batch_norm": (BatchNorm, {}),
    "cmf": (CMF, {"lr": 0.1}),
    "cotta": (CoTTA, {"lr": 0.1, "views": 2}),
    "deyo": (DeYO, {"lr": 0.1, "entropy_share": 1.0, "difference_bound": -1.0}),
    "eata": (EATA, {"lr": 0.1, "reliable_share": 1.0, "redundancy_margin": 1.0}),
    "lame": (LAME, {}),
    "rdumb": (RDumb, {"lr": 0.1, "reliable_share": 1.0, "redundancy_margin": 1.0}),
    "roid": (ROID, {"lr": 0.1}),
    "sar": (SAR, {"lr": 0.1, "reliable_share": 1.0}),
    "tent": (Tent, {"lr": 0.1}),
}


def made(name, window):
    kind, settings = WINDOWED[name]
    return kind(tiny_classifier(), window=window, **settings)


def singles(batch):
    return [
        Batch(number, (sample,), batch.inputs[number : number + 1])
        for number, sample in enumerate(batch.samples)
    ]


@pytest.mark.parametrize("name", WINDOWED)
def test_every_method_keeps_its_promises_with_a_window_larger_than_a_batch(name):
    kind, settings = WINDOWED[name]
    check_method(lambda model: kind(model, window=12, **settings))


@pytest.mark.parametrize("name", WINDOWED)
def test_a_window_of_single_samples_learns_what_a_batch_of_them_does(name):
    batch, one, other = tiny_batch(), made(name, window=8), made(name, window=0)
    answers = [one.step(each, Allowance(0)).prediction for each in singles(batch)]
    together = other.step(batch, Allowance(0)).prediction

    assert [len(each.logits) for each in answers] == [1] * 8
    assert torch.allclose(answers[-1].logits, together.logits[-1:], atol=1e-6)
    states = one.model.state_dict(), other.model.state_dict()
    for key, value in states[0].items():
        assert torch.allclose(value, states[1][key], atol=1e-6)


def test_between_updates_samples_are_answered_in_company_and_nothing_is_learned():
    method, batch = Tent(tiny_classifier(), lr=0.1, window=8), tiny_batch()
    before = method.model.model[1].weight.clone()
    for each in singles(batch)[:5]:
        answer = method.step(each, Allowance(0)).prediction

    expected = BatchNorm(tiny_classifier()).predict(batch.inputs[:5]).logits[-1:]
    assert torch.allclose(answer.logits, expected, atol=1e-6)
    assert torch.equal(method.model.model[1].weight, before)


def test_forgotten_samples_leave_the_window():
    method, batch = Tent(tiny_classifier(), window=8), tiny_batch()
    method.step(Batch(0, batch.samples[:4], batch.inputs[:4]), Allowance(0))
    method.forget(batch.samples[:3])

    assert method.window.samples == batch.samples[3:4]
    expected = BatchNorm(tiny_classifier()).predict(batch.inputs[3:5]).logits[-1:]
    assert torch.allclose(method.predict(batch.inputs[4:5]).logits, expected, atol=1e-6)


def test_labelled_samples_have_the_company_of_the_window():
    model = tiny_classifier()
    method = Enhanced(model, method=Tent(model, window=4), rate=LabelRate(per_1000=1000))
    for each in singles(tiny_batch()):
        method.step(each, Allowance(1))

    assert method.latest.rows.samples == tiny_batch().samples[-4:]


def test_a_window_is_a_count():
    with pytest.raises(SettingError, match="LAME: window must be at least 0, got -1"):
        LAME(tiny_classifier(), window=-1)
