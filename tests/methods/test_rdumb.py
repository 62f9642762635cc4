import pytest
import torch

from attakit.errors import SettingError
from attakit.methods import EATA, RDumb
from attakit.queries import Allowance
from attakit.testing import check_method, tiny_batch, tiny_classifier

LEARNS = {"lr": 0.1, "reliable_share": 1.0, "redundancy_margin": 1.0}


def logits_of(method, steps):
    return [method.step(tiny_batch(step), Allowance(0)).prediction.logits for step in steps]


def test_until_a_reset_it_is_eata_without_the_regulariser():
    one, other = (
        RDumb(tiny_classifier(), reset_every=4, **LEARNS),
        EATA(tiny_classifier(), **LEARNS),
    )

    for given, expected in zip(logits_of(one, range(4)), logits_of(other, range(4)), strict=True):
        assert torch.equal(given, expected)


def test_after_a_reset_it_is_as_if_new():
    method = RDumb(tiny_classifier(), reset_every=3, **LEARNS)
    logits_of(method, range(3))

    assert method.average is None
    assert len(method.optimizer.state) == 0
    for given, expected in zip(
        logits_of(method, range(5, 7)),
        logits_of(RDumb(tiny_classifier(), **LEARNS), range(5, 7)),
        strict=True,
    ):
        assert torch.equal(given, expected)


def test_batches_that_nothing_is_learned_from_count():
    method = RDumb(tiny_classifier(), reset_every=2, reliable_share=0.0)
    numbers = [method.step(tiny_batch(step), Allowance(0)).numbers for step in range(4)]

    assert [each["kept"] for each in numbers] == [0] * 4
    assert [each["reset"] for each in numbers] == [0, 1, 0, 1]


def test_it_keeps_its_promises_across_resets():
    check_method(lambda model: RDumb(model, reset_every=3, **LEARNS))


def test_it_needs_nothing_from_the_source():
    assert RDumb.source_input_count({}) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reset_every": 0}, "RDumb: reset_every must be at least 1, got 0"),
        ({"reliable_share": 2}, "RDumb: reliable_share must be at least 0 and at most 1, got 2"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        RDumb(tiny_classifier(), **settings)
