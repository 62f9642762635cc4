import pytest
import torch

from attakit.engine import PoolAdaptation
from attakit.errors import SettingError, StateError, StreamError
from attakit.label import Budget, Delayed, KnownLabels, Ledger, Skipping
from attakit.select import BADGE, Uniform
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
        super().__init__(first="unlimited", per_step="unlimited")
        self.calls = []

    def select(self, candidates, known, limit, step):
        self.calls.append((set(candidates.samples), set(known.samples), limit, step))
        return super().select(candidates, known, limit, step)


def truth():
    return KnownLabels({f"s{number}": number % 3 for number in range(SIZE)})


def adaptation(oracle=None, budget=9, **settings):
    chosen = {
        "selector": BADGE(first="unlimited", per_step="unlimited"),
        "rounds": 3,
        "updates": 3,
        "lr": 0.05,
        "samples": Unlabelled(),
        **settings,
    }
    samples = chosen.pop("samples")
    ledger = Ledger(Budget(budget))
    return PoolAdaptation(tiny_classifier(), samples, oracle or truth(), ledger, **chosen)


@pytest.mark.parametrize(
    ("budget", "rounds", "shares"),
    [(9, 3, [3, 3, 3]), (11, 3, [3, 3, 5]), (2, 3, [0, 0, 2]), (0, 2, [0, 0]), (50, 1, [SIZE])],
)
def test_rounds_share_the_budget_and_the_last_takes_the_rest(budget, rounds, shares):
    result = adaptation(budget=budget, rounds=rounds).run()

    assert [len(step_result.step.queries) for step_result in result.rounds] == shares
    assert len(result.labels) == sum(shares)


def test_every_round_chooses_from_all_that_was_not_asked_yet():
    selector = Watched()
    result = adaptation(selector=selector).run()
    asked = set()
    for (candidates, known, limit, step), step_result in zip(
        selector.calls, result.rounds, strict=True
    ):
        assert candidates == {f"s{number}" for number in range(SIZE)} - asked
        assert known == asked
        assert (limit, step) == (3, step_result.batch.step)
        asked |= set(step_result.batch.samples)
    assert len(asked) == 9


def test_a_moment_shows_what_was_asked_with_the_answer_of_the_model_before_the_round():
    pool = Unlabelled()
    whole = adaptation(samples=pool)
    before = whole.learner.predict(pool.inputs).logits

    step_result = whole.run_round()

    places = [int(name[1:]) for name in step_result.batch.samples]
    assert torch.equal(step_result.batch.inputs, pool.inputs[places])
    torch.testing.assert_close(step_result.step.prediction.logits, before[places])
    assert [query.sample for query in step_result.step.queries] == list(step_result.batch.samples)
    assert step_result.training.updates == 3
    assert (step_result.asked, step_result.received, step_result.remaining) == (3, 3, 6)
    assert step_result.step.numbers["candidates"] == SIZE


def test_labels_are_those_of_the_oracle_and_the_model_learns_them():
    result = adaptation(budget=SIZE, rounds=2, updates=300, lr=0.1).run()
    labels = torch.tensor([result.labels[f"s{number}"] for number in range(SIZE)])

    assert labels.tolist() == [number % 3 for number in range(SIZE)]
    right = result.model(tiny_batch(size=SIZE).inputs).argmax(dim=1) == labels
    assert right.float().mean() > 0.8


def test_the_pool_is_never_loaded_at_once_and_its_labels_are_not_needed():
    pool = Unlabelled()

    adaptation(samples=pool, forward_batch=7).run()

    assert max(pool.loads) == 7


def test_a_skipped_sample_is_not_asked_again_and_its_label_is_spent_later():
    selector = Watched()
    whole = adaptation(Skipping(truth(), rate=0.5, seed=1), budget=12, rounds=4, selector=selector)

    result = whole.run()

    asked = [query.sample for step_result in result.rounds for query in step_result.step.queries]
    assert len(asked) == len(set(asked)) > 12
    assert whole.ledger.refunded > 0
    assert set(result.labels) <= set(asked)
    before = [0, *(step_result.received for step_result in result.rounds)]
    # Each round fills up what the rounds before it were refunded.
    limits = [limit for _, _, limit, _ in selector.calls]
    assert limits == [3 * (number + 1) - before[number] for number in range(4)]
    skipped = set(asked) - set(result.labels)
    assert not any(known & skipped for _, known, _, _ in selector.calls)


def test_late_answers_are_used_in_the_round_in_which_they_come():
    selector = Watched()
    whole = adaptation(Delayed(truth(), rounds=1), selector=selector)

    result = whole.run()

    assert [step_result.received for step_result in result.rounds] == [0, 3, 6]
    assert [step_result.training.updates for step_result in result.rounds] == [0, 3, 3]
    assert [len(known) for _, known, _, _ in selector.calls] == [0, 3, 6]  # waiting ones count
    assert len(result.labels) == 6
    assert whole.ledger.budget.spent == 6


def test_answers_after_the_last_round_are_waited_for_on_request():
    whole = adaptation(Delayed(truth(), rounds=1))

    assert len(whole.run(wait=30.0).labels) == 9
    assert whole.learner.trainings == 3


def hesitant():
    return Delayed(Skipping(truth(), rate=0.3, seed=2), rounds=0, jitter=2, seed=2)


@pytest.mark.parametrize("norm", ["frozen", "running"])
@pytest.mark.parametrize("stop", [0, 1, 3, 4])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path, stop, norm):
    settings = {"budget": 17, "rounds": 4, "norm": norm}
    unbroken = adaptation(hesitant(), **settings)
    first, second = adaptation(hesitant(), **settings), adaptation(hesitant(), **settings)
    for _ in range(stop):
        first.run_round()
    torch.save(first.state_dict(), tmp_path / "state")
    second.load_state_dict(torch.load(tmp_path / "state"))

    result, wanted = second.run(), unbroken.run()

    assert result.labels == wanted.labels
    rest = wanted.rounds[stop:]
    assert [m.batch.samples for m in result.rounds] == [m.batch.samples for m in rest]
    weights = wanted.model.state_dict()
    for name, value in result.model.state_dict().items():
        assert torch.equal(value, weights[name])


def test_progress_is_told_after_every_round():
    seen = []

    adaptation().run(progress=lambda step_result: seen.append(step_result.batch.step))

    assert seen == [0, 1, 2]


def test_statistics_of_the_batch_suit_a_pool_of_any_size():
    result = adaptation(norm="batch", forward_batch=SIZE - 1).run()

    assert len(result.labels) == 9


def test_there_is_no_round_after_the_last():
    whole = adaptation()
    whole.run()

    with pytest.raises(SettingError, match="all 3 rounds are done"):
        whole.run_round()


def test_the_budget_must_have_a_limit():
    with pytest.raises(SettingError, match="the budget must have a limit"):
        adaptation(budget=None)


def test_a_pool_must_hold_samples_with_names_of_their_own():
    with pytest.raises(StreamError, match="must hold samples"):
        adaptation(samples=ArraySamples(torch.zeros(0, 4), []))
    with pytest.raises(StreamError, match="name of its own"):
        adaptation(samples=Unlabelled(names=("s0", "s0")))


@pytest.mark.parametrize("name", ["rounds", "forward_batch"])
def test_counts_are_checked(name):
    with pytest.raises(SettingError, match=f"PoolAdaptation: {name}"):
        adaptation(**{name: 0})


def test_a_state_of_something_else_is_refused():
    with pytest.raises(StateError, match=r"PoolAdaptation: the saved state has \['step'\]"):
        adaptation().load_state_dict({"step": 1})
