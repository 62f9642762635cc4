import pytest

from attakit.engine import run
from attakit.label import Budget, Callback, Ledger
from attakit.methods import SimATTA
from attakit.select import SELECTORS
from attakit.testing import tiny_batch, tiny_classifier

STEPS, BUDGET = 4, 14


@pytest.mark.parametrize("name", SELECTORS)
def test_simatta_takes_any_selector(name):
    selector = SELECTORS[name]()
    method = SimATTA(tiny_classifier(), high_entropy_bound=0.0, selector=selector)
    ledger = Ledger(Budget(BUDGET))
    batches = [tiny_batch(step, size=30) for step in range(STEPS)]

    run(batches, method, Callback(lambda _name: 1), ledger)

    assert ledger.received == BUDGET
    assert len(method.high_entropy_anchors) == ledger.received
