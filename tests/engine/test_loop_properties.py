"""Whatever the oracle does, the budget holds and the books balance."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attakit.engine import drain, run
from attakit.label import Budget, Delayed, Expiring, KnownLabels, Ledger, Noisy, Skipping
from attakit.methods import SimATTA
from attakit.nn.seeding import seeded
from attakit.queries import Query, SampleId
from attakit.records import Batch, Prediction, Step, Training
from attakit.select import IncrementalClustering
from attakit.stream import Stream, blobs, domain_after_domain
from attakit.train.balanced import BalancedTrainer

rates = st.sampled_from([0.0, 0.3, 0.7, 1.0])
seeds = st.integers(0, 1000)


@st.composite
def oracles(draw, labels):
    """Any nest of wrappers around the truth."""
    oracle = KnownLabels(labels)
    for kind in draw(st.lists(st.sampled_from("nsde"), max_size=4)):
        seed = draw(seeds)
        if kind == "n":
            oracle = Noisy(oracle, rate=draw(rates), classes=3, seed=seed)
        elif kind == "s":
            oracle = Skipping(oracle, rate=draw(rates), seed=seed)
        elif kind == "d":
            rounds, jitter = draw(st.integers(0, 4)), draw(st.integers(0, 4))
            oracle = Delayed(oracle, rounds=rounds, jitter=jitter, seed=seed)
        else:
            oracle = Expiring(oracle, rounds=draw(st.integers(1, 4)))
    return oracle


class Auditor:
    """Checks the books after every step."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.labelled = 0

    def on_step(self, result):
        limit = self.ledger.budget.limit
        self.labelled += sum(answer.says_something for answer in result.answers)
        assert result.received == self.labelled == sum(result.counts.values())
        waiting = sum(map(self.ledger.budget.price, self.ledger.open))
        assert result.cost + waiting == self.ledger.budget.spent <= limit
        assert result.remaining == limit - self.ledger.budget.spent >= 0
        assert result.asked == self.ledger.received + self.ledger.refunded + len(self.ledger.open)

    def close(self):
        pass


def run_audited(stream, method, oracle, limit, price=1.0):
    ledger = Ledger(Budget(limit, yes_no_price=price))
    run(stream, method, oracle, ledger, [Auditor(ledger)])
    drain(method, oracle, ledger)
    assert ledger.open == ()
    assert ledger.cost == ledger.budget.spent <= limit
    assert ledger.asked == ledger.received + ledger.refunded
    return ledger


@settings(max_examples=60)
@given(
    data=st.data(),
    limit=st.integers(0, 30),
    count=st.integers(0, 8),
    steps=st.integers(0, 12),
    proposed=st.sampled_from([None, 1]),
)
def test_a_scripted_method_never_spends_more_than_the_budget(data, limit, count, steps, proposed):
    labels, batches = _world(steps)
    method = _Asker(count, proposed)
    ledger = run_audited(batches, method, data.draw(oracles(labels)), limit, price=0.25)
    heard = [answer for turn in method.learned for answer in turn]
    assert len({answer.query for answer in heard}) == len(heard) == ledger.asked


@pytest.fixture(scope="module")
def stream():
    domains = blobs().only("turned", "far")
    return Stream(domains, domain_after_domain(domains), batch_size=40)


@pytest.fixture(scope="module")
def model():
    domains = blobs()
    near = domains.parts["near"]
    inputs, labels = near.load(range(len(near.names))), torch.tensor(near.labels)
    with seeded(0, "blob model"):
        model = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    return model.eval()


@settings(max_examples=12)
@given(data=st.data(), limit=st.integers(0, 25))
def test_simatta_never_gets_more_labels_than_the_budget(data, limit, stream, model):
    method = SimATTA(
        model,
        high_entropy_bound=0.05,
        selector=IncrementalClustering(inits=1),
        trainer=BalancedTrainer(max_updates=2),
    )
    oracle = data.draw(oracles(stream.truth.labels))
    ledger = run_audited(stream, method, oracle, limit)
    assert len(method.waiting) == 0
    assert len(method.high_entropy_anchors) == ledger.received


class _Asker:
    def __init__(self, count, proposed):
        self.count = count
        self.proposed = proposed
        self.learned = []

    def step(self, batch, allowance):
        kind = Query("", 0, self.proposed).kind
        samples = batch.samples[: min(self.count, allowance.of(kind).count)]
        return Step(EMPTY, tuple(Query(name, batch.step, self.proposed) for name in samples))

    def learn(self, answers):
        self.learned.append(answers)
        return Training()


EMPTY = Prediction(torch.zeros(0, 3), torch.zeros(0, 2))


def _world(steps):
    names = [tuple(SampleId(f"{step}-{number}") for number in range(8)) for step in range(steps)]
    labels = {sample: len(sample) % 3 for batch in names for sample in batch}
    return labels, [Batch(step, batch, torch.zeros(8, 1)) for step, batch in enumerate(names)]
