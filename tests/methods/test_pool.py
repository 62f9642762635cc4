import time

import pytest
import torch

from attakit.engine import drain, run
from attakit.errors import SettingError, StreamError
from attakit.label import Budget, Delayed, KnownLabels, Ledger, Skipping
from attakit.methods import PoolAdaptation
from attakit.records import Batch
from attakit.select import BADGE, Uniform
from attakit.store import load_state, save_state
from attakit.stream import ArraySamples
from attakit.testing import tiny_batch, tiny_classifier

SIZE = 40


class Unlabelled:
    """A pool without labels that counts how many samples are loaded at once."""

    def __init__(self, names=None):
        self.inputs = tiny_batch(size=SIZE).inputs
        self.names = names or tuple(f"s{number}" for number in range(SIZE))
        self.loads = []

    def __len__(self):
        return len(self.names)

    def load(self, positions):
        self.loads.append(len(positions))
        return self.inputs[list(positions)]


class Watched(Uniform):
    """Remembers what it was asked."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def select(self, candidates, known, limit, step):
        self.calls.append((set(candidates.samples), set(known.samples), limit, step))
        return super().select(candidates, known, limit, step)


def truth():
    return KnownLabels({f"s{number}": number % 3 for number in range(SIZE)})


class Run:
    """A pool run: its method, its oracle and its ledger, and what each round came to."""

    def __init__(self, oracle=None, budget=9, **settings):
        chosen = {
            "selector": BADGE(),
            "rounds": 3,
            "updates": 3,
            "lr": 0.05,
            "samples": Unlabelled(),
            **settings,
        }
        self.method = PoolAdaptation(tiny_classifier(), budget=budget, **chosen)
        self.oracle, self.ledger = oracle or truth(), Ledger(Budget(budget))
        self.results = []

    def rounds(self, start=0, stop=None):
        """Do some rounds, by default those that are left."""
        none = tiny_batch().inputs[:0]
        numbers = range(start, self.method.rounds if stop is None else stop)
        batches = [Batch(number, (), none) for number in numbers]
        run(batches, self.method, self.oracle, self.ledger, [self])
        return self.results

    def finish(self, wait=0.0):
        drain(self.method, self.oracle, self.ledger, wait=wait)
        return self.method.labels

    def on_step(self, result):
        self.results.append(result)


@pytest.mark.parametrize(
    ("budget", "rounds", "shares"),
    [(9, 3, [3, 3, 3]), (11, 3, [3, 3, 5]), (2, 3, [0, 0, 2]), (0, 2, [0, 0]), (50, 1, [SIZE])],
)
def test_rounds_share_the_budget_and_the_last_takes_the_rest(budget, rounds, shares):
    whole = Run(budget=budget, rounds=rounds)

    assert [len(result.step.queries) for result in whole.rounds()] == shares
    assert len(whole.finish()) == sum(shares)


def test_every_round_chooses_from_all_that_was_not_asked_yet():
    selector = Watched()
    results = Run(selector=selector).rounds()
    asked = set()
    for (candidates, known, limit, step), step_result in zip(selector.calls, results, strict=True):
        assert candidates == {f"s{number}" for number in range(SIZE)} - asked
        assert known == asked
        assert (limit, step) == (3, step_result.batch.step)
        asked |= set(step_result.batch.samples)
    assert len(asked) == 9


def test_a_round_shows_what_was_asked_with_the_answer_of_the_model_before_the_round():
    pool = Unlabelled()
    whole = Run(samples=pool)
    before = whole.method.predict(pool.inputs).logits

    (step_result,) = whole.rounds(stop=1)

    places = [int(name[1:]) for name in step_result.batch.samples]
    assert torch.equal(step_result.batch.inputs, pool.inputs[places])
    torch.testing.assert_close(step_result.step.prediction.logits, before[places])
    assert [query.sample for query in step_result.step.queries] == list(step_result.batch.samples)
    assert step_result.training.updates == 3
    assert (step_result.asked, step_result.received, step_result.remaining) == (3, 3, 6)
    assert step_result.step.numbers["candidates"] == SIZE


def test_labels_are_those_of_the_oracle_and_the_model_learns_them():
    whole = Run(budget=SIZE, rounds=2, updates=300, lr=0.1)
    whole.rounds()
    labels = torch.tensor([whole.method.labels[f"s{number}"] for number in range(SIZE)])

    assert labels.tolist() == [number % 3 for number in range(SIZE)]
    right = whole.method.adapted_model(tiny_batch(size=SIZE).inputs).argmax(dim=1) == labels
    assert right.float().mean() > 0.8


def test_the_pool_is_never_loaded_at_once_and_its_labels_are_not_needed():
    pool = Unlabelled()

    Run(samples=pool, forward_batch=7).rounds()

    assert max(pool.loads) == 7


def test_a_skipped_sample_is_not_asked_again_and_its_label_is_spent_later():
    selector = Watched()
    whole = Run(Skipping(truth(), rate=0.5, seed=1), budget=12, rounds=4, selector=selector)

    results = whole.rounds()

    labels = whole.method.labels
    asked = [query.sample for result in results for query in result.step.queries]
    assert len(asked) == len(set(asked)) > 12
    assert whole.ledger.refunded > 0
    assert set(labels) <= set(asked)
    before = [0, *(result.received for result in results)]
    # Each round fills up what the rounds before it were refunded.
    limits = [limit for _, _, limit, _ in selector.calls]
    assert limits == [3 * (number + 1) - before[number] for number in range(4)]
    skipped = set(asked) - set(labels)
    assert not any(known & skipped for _, known, _, _ in selector.calls)


def test_late_answers_are_used_in_the_round_in_which_they_come():
    selector = Watched()
    whole = Run(Delayed(truth(), rounds=1), selector=selector)

    results = whole.rounds()

    assert [result.received for result in results] == [0, 3, 6]
    assert [result.training.updates for result in results] == [0, 3, 3]
    assert [len(known) for _, known, _, _ in selector.calls] == [0, 3, 6]  # waiting ones count
    assert len(whole.finish()) == 6
    assert whole.ledger.budget.spent == 6


def test_answers_after_the_last_round_are_waited_for_on_request():
    whole = Run(Delayed(truth(), rounds=1))
    whole.rounds()

    assert len(whole.finish(wait=30.0)) == 9
    assert whole.method.trainings == 3


def hesitant():
    return Delayed(Skipping(truth(), rate=0.3, seed=2), rounds=0, jitter=2, seed=2)


@pytest.mark.parametrize("norm", ["frozen", "running"])
@pytest.mark.parametrize("stop", [0, 1, 3, 4])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, stop, norm):
    settings = {"budget": 17, "rounds": 4, "norm": norm}
    unbroken = Run(hesitant(), **settings)
    first, second = Run(hesitant(), **settings), Run(hesitant(), **settings)
    first.rounds(stop=stop)
    parts = ("method", "oracle", "ledger")
    save_state(tmp_path / "state", {name: getattr(first, name).state_dict() for name in parts})
    for name, state in load_state(tmp_path / "state").items():
        getattr(second, name).load_state_dict(state)

    results, wanted = second.rounds(start=stop), unbroken.rounds()

    assert second.finish() == unbroken.finish()
    assert [r.batch.samples for r in results] == [r.batch.samples for r in wanted[stop:]]
    weights = unbroken.method.adapted_model.state_dict()
    for name, value in second.method.adapted_model.state_dict().items():
        assert torch.equal(value, weights[name])


def test_statistics_of_the_batch_suit_a_pool_of_any_size():
    whole = Run(norm="batch", forward_batch=SIZE - 1)
    whole.rounds()

    assert len(whole.method.labels) == 9


def test_the_seconds_of_a_round_leave_out_the_loading():
    class Slow(Unlabelled):
        def load(self, positions):
            time.sleep(0.2)
            return super().load(positions)

    (result,) = Run(samples=Slow(), forward_batch=10).rounds(stop=1)

    assert result.seconds < 0.6  # loading the pool alone takes four times 0.2


def test_a_pool_must_hold_samples_with_names_of_their_own():
    with pytest.raises(StreamError, match="must hold samples"):
        Run(samples=ArraySamples(torch.zeros(0, 4), []))
    with pytest.raises(StreamError, match="needs its own name"):
        Run(samples=Unlabelled(names=("s0", "s0")))


@pytest.mark.parametrize("name", ["budget", "rounds", "forward_batch"])
def test_counts_are_checked(name):
    with pytest.raises(SettingError, match=f"PoolAdaptation: {name}"):
        Run(**{name: -1})
