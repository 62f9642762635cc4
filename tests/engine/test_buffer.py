"""Small batches are answered at once, and learned from together."""

import pytest
import torch

from attakit.engine import Buffer, adapt, run
from attakit.errors import SettingError
from attakit.label import Budget, Callback, Ledger
from attakit.methods import SimATTA, SourceOnly
from attakit.queries import Allowance
from attakit.records import Batch, Step
from attakit.select import IncrementalClustering
from attakit.testing import tiny_batch, tiny_classifier
from attakit.testing.methods import same_state
from attakit.train.balanced import BalancedTrainer

STREAM = tiny_batch(size=60)


def cut(size):
    """The same 60 samples in batches of this size."""
    pieces = range(0, len(STREAM), size)
    return [
        Batch(number, STREAM.samples[at : at + size], STREAM.inputs[at : at + size])
        for number, at in enumerate(pieces)
    ]


def pairs(size):
    return [(list(batch.samples), batch.inputs) for batch in cut(size)]


def in_the_papers_pace():
    return SimATTA.as_in_paper(
        tiny_classifier(),
        high_entropy_bound=0.0,
        selector=IncrementalClustering(cluster_growth=1, initial_clusters=3, inits=1),
        trainer=BalancedTrainer(max_updates=2),
    )


class Recorder:
    """Remembers what every turn looked like."""

    def __init__(self):
        self.results = []

    def on_step(self, result):
        self.results.append(result)

    def close(self):
        pass


def ran(size, buffer, limit=None):
    method, ledger, recorder = in_the_papers_pace(), Ledger(Budget(limit)), Recorder()
    oracle = Callback(lambda name: int(name.split("-")[1]) % 3)
    run(cut(size), method, oracle, ledger, [recorder], buffer=buffer)
    return method, ledger, recorder.results


def test_samples_that_come_one_by_one_do_not_use_up_the_budget():
    assert ran(size=1, buffer=0, limit=10)[1].asked == 10, "each sample is a batch of its own"
    asked = ran(size=1, buffer=20, limit=10)[1].asked
    assert asked == ran(size=20, buffer=0, limit=10)[1].asked < 10


def test_a_buffer_chooses_and_learns_as_batches_of_its_size_do():
    whole, pieces = ran(size=20, buffer=0), ran(size=5, buffer=20)

    assert same_state(whole[0].state_dict(), pieces[0].state_dict())
    assert whole[1].asked == pieces[1].asked > 3
    assert [result.training.updates for result in pieces[2]] == [0, 0, 0, 2] * 3


def test_every_batch_is_answered_by_the_model_as_it_is_when_it_arrives():
    _, _, results = ran(size=5, buffer=20)
    fresh = in_the_papers_pace()

    for result in results[:4]:
        expected = fresh.predict(result.batch.inputs).logits
        assert torch.equal(result.step.prediction.logits, expected)
    for result in results:
        assert len(result.step.prediction.logits) == len(result.batch)


def test_what_is_left_at_the_end_of_a_stream_is_used():
    _, _, results = ran(size=5, buffer=25)

    stepped = [number for number, result in enumerate(results) if result.step.numbers]
    assert stepped == [4, 9, 11]


def test_batches_that_are_large_enough_pass_as_they_are():
    plain, buffered = ran(size=20, buffer=0), ran(size=20, buffer=20)

    assert same_state(plain[0].state_dict(), buffered[0].state_dict())


def test_adapt_asks_with_the_inputs_of_earlier_batches():
    seen = {}
    turns = adapt(
        in_the_papers_pace(), pairs(1), lambda *pair: seen.update([pair]) or 0, budget=9, buffer=20
    )

    assert len(list(turns)) == 60
    assert 3 <= len(seen) <= 9
    for name, row in seen.items():
        assert torch.equal(row, STREAM.inputs[STREAM.samples.index(name)])


def test_a_budget_is_spread_over_samples_that_wait_too():
    budget = Budget(12)
    method = SimATTA(tiny_classifier(), high_entropy_bound=0.0)

    list(adapt(method, pairs(1), lambda *_: 0, budget=budget, buffer=20))

    assert budget.spent == 12


def test_a_saved_buffer_continues_where_it_was():
    method, first, second = SourceOnly(tiny_classifier()), Buffer(20), Buffer(20)
    for batch in cut(8)[:2]:
        first.answer(batch, method, Allowance(0))
    second.load_state_dict(first.state_dict())

    second.answer(cut(8)[2], method, Allowance(0))

    assert second.stepped is not None
    assert second.stepped.samples == STREAM.samples[:24]
    assert torch.equal(second.stepped.inputs, STREAM.inputs[:24])
    assert (len(first), len(second), second.next_step) == (16, 0, 1)


def test_a_sample_that_comes_twice_is_looked_at_once():
    method, buffer = SourceOnly(tiny_classifier()), Buffer(16)
    for _ in range(2):
        buffer.answer(tiny_batch(size=8), method, Allowance(0))

    assert buffer.stepped is not None
    assert len(buffer.stepped) == 8


def test_a_step_that_is_none_is_refused_from_a_buffer_too():
    class Forgetful(SourceOnly):
        def step(self, batch, allowance):
            super().step(batch, allowance)

    with pytest.raises(SettingError, match="Forgetful: step must return a Step, got NoneType"):
        Buffer(4).answer(tiny_batch(), Forgetful(tiny_classifier()), Allowance(0))


def test_a_batch_that_waits_has_an_answer_and_no_questions():
    buffer = Buffer(100)
    step, seconds = buffer.answer(tiny_batch(), in_the_papers_pace(), Allowance(5))

    assert isinstance(step, Step)
    assert (step.queries, buffer.stepped) == ((), None)
    assert seconds > 0
