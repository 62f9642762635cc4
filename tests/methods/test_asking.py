"""The pace of methods that ask: how many labels, when, and what a selector may decide itself."""

import pytest

from attakit.engine import adapt, run
from attakit.errors import StateError
from attakit.label import Budget, Callback, Delayed, KnownLabels, Ledger, Skipping
from attakit.methods import METHODS, SimATTA
from attakit.methods.asking import AskingMethod
from attakit.queries import Allowance
from attakit.select import IncrementalClustering, LabelRate, Uniform
from attakit.testing import tiny_batch, tiny_classifier

STREAM = [tiny_batch(number, size=20) for number in range(10)]
LABELS = {name: place % 3 for batch in STREAM for place, name in enumerate(batch.samples)}
OPEN = {"high_entropy_bound": 0.0, "include_bound": True}  # every sample may be asked about
ASKING = {
    "simatta": {**OPEN, "selector": IncrementalClustering(inits=1)},
    "anchor_head": {},
    "enhanced": {},
}


class Asker(AskingMethod):
    """Asks, and learns nothing."""

    def learn(self, answers):
        self.waiting.resolve(answers)
        return super().learn(())


def asker(**settings):
    return Asker(tiny_classifier(), **{"selector": Uniform(), **settings})


def counts(method, budget, *, wrap=lambda oracle: oracle):
    """Questions at each batch of the stream."""
    asked = []

    class Counting:
        def on_step(self, result):
            asked.append(len(result.step.queries))

    run(STREAM, method, wrap(KnownLabels(LABELS)), Ledger(Budget(budget)), [Counting()])
    return asked


@pytest.mark.parametrize("name", ASKING)
def test_every_method_spreads_the_budget_over_a_stream_of_known_length(name):
    asked = counts(METHODS[name](tiny_classifier(), **ASKING[name]), budget=40)

    assert sum(asked) == 40
    assert all(count > 0 for count in asked)


def test_a_plain_loop_spreads_the_budget_over_a_list_but_not_over_a_generator():
    budgets = {}
    for kind in (list, iter):
        budgets[kind] = budget = Budget(40)
        batches = kind([batch.inputs for batch in STREAM])
        for _ in adapt(asker(), batches, lambda name, row: 0, budget=budget):
            pass

    # 30 per 1,000 of 200 samples and 10 at first; a quarter of the first batch, then the rest.
    assert {kind: budget.spent for kind, budget in budgets.items()} == {list: 40, iter: 16}


def test_a_rate_that_is_given_is_kept():
    assert counts(asker(rate=LabelRate(per_1000=100, first=0)), budget=99) == [2] * 10
    assert counts(asker(rate=LabelRate(spread_over=100, first=0)), budget=10)[:5] == [2] * 5


def test_methods_that_are_given_the_same_rate_do_not_share_its_state():
    rate = LabelRate(per_1000=100)
    first, second = asker(rate=rate), asker(rate=rate)

    assert counts(first, budget=99) == counts(second, budget=99)
    assert rate.seen == 0


def test_growing_clusters_set_the_pace_as_the_paper_says():
    growing = IncrementalClustering(initial_clusters=4, cluster_growth=2, inits=1)
    slow = LabelRate(per_1000=0, first=0)

    asked = counts(SimATTA(tiny_classifier(), selector=growing, rate=slow, **OPEN), budget=99)

    assert asked[0] == 4
    assert sum(asked) > 20


def test_growing_clusters_grow_faster_after_an_alarm():
    class Steps(IncrementalClustering):
        seen: tuple[int, ...] = ()

        def select(self, candidates, known, limit, step):
            self.seen += (step,)
            return super().select(candidates, known, limit, step)

    selector = Steps(cluster_growth=1, inits=1)
    method = asker(selector=selector)
    for batch, pace in zip(STREAM, (1.0, 1.0, 2.0, 2.0, 1.0), strict=False):
        method.step(batch, Allowance(99, pace=pace))

    assert selector.seen == (0, 1, 3, 5, 6)


def test_skipped_labels_are_asked_for_again_and_late_ones_are_not():
    def half_skipped(oracle):
        return Skipping(oracle, rate=0.5, seed=1)

    def late(oracle):
        return Delayed(oracle, rounds=3)

    assert sum(counts(asker(), 20, wrap=half_skipped)) > 25
    assert sum(counts(asker(), 20, wrap=late)) == 20


def test_a_replayed_step_asks_the_same_and_leaves_the_same_state():
    first, again = asker(), asker()
    for batch in STREAM[:4]:
        asked = [query.sample for query in first.step(batch, Allowance(9)).queries]
        replayed = again.step(batch, Allowance(9, repeat=asked))
        assert [query.sample for query in replayed.queries] == asked

    assert first.rate.state_dict() == again.rate.state_dict()


def test_what_a_limit_per_class_holds_back_is_still_due():
    method = asker(rate=LabelRate(per_1000=200, first=0))

    none = method.step(STREAM[0], Allowance(99, per_class={}))
    some = method.step(STREAM[1], Allowance(99))

    assert (len(none.queries), len(some.queries)) == (0, 5)


def test_a_callback_that_never_knows_costs_nothing_and_is_asked_to_the_end():
    ledger = Ledger(Budget(20))
    run(STREAM, asker(), Callback(lambda _name: None), ledger)

    assert (ledger.received, ledger.budget.spent) == (0, 0)
    assert ledger.asked > 20


def test_a_state_from_before_there_was_a_rate_is_refused_with_what_to_do():
    """Its run would continue at another pace."""
    method = asker()
    state = method.state_dict()
    del state["rate"]
    with pytest.raises(StateError, match="version of attakit that wrote it"):
        method.load_state_dict(state)
