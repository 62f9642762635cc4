import pytest
import torch

from attakit.engine import drain, run
from attakit.errors import BudgetExhausted, LabelError, SettingError, UnknownQuestion
from attakit.label import Budget, Callback, Delayed, Expiring, KnownLabels, Ledger, Skipping
from attakit.methods import SimATTA, SourceOnly
from attakit.queries import Answer, Query
from attakit.records import Batch
from attakit.testing import tiny_batch, tiny_classifier
from states import same_state


class Watcher:
    """Keeps every moment."""

    def __init__(self):
        self.moments = []

    def on_step(self, result):
        self.moments.append(result)

    def close(self):
        pass


class Repeating:
    """Gives every answer again at each later look, and the newest first."""

    def __init__(self, oracle):
        self.oracle = oracle
        self.given = []

    @property
    def pending(self):
        return self.oracle.pending

    def ask(self, queries):
        self.oracle.ask(queries)

    def collect(self):
        self.given = [*reversed(self.oracle.collect()), *self.given]
        return tuple(self.given)


def test_an_instant_answer_is_learned_in_the_turn_that_asked(scripted, batches, labels):
    method, ledger = scripted(), Ledger(Budget(100))
    run(batches, method, KnownLabels(labels), ledger)
    assert method.turns == [2, 2, 2, 2]
    assert method.labels == {sample: labels[sample] for sample in method.labels}
    assert (ledger.asked, ledger.received, ledger.budget.remaining) == (8, 8, 92)


def test_a_late_answer_is_learned_in_a_later_turn(scripted, batches, labels):
    method, ledger = scripted(), Ledger(Budget(100))
    run(batches, method, Delayed(KnownLabels(labels), rounds=3), ledger)
    assert method.turns == [0, 0, 0, 2]
    assert [answer.query.step for answer in method.learned[3]] == [0, 0]
    assert (ledger.received, len(ledger.open), ledger.budget.spent) == (2, 6, 8)


def test_answers_come_out_of_order(scripted, labels):
    batches = [Batch(step, tiny_batch(step).samples, torch.zeros(8, 1)) for step in range(20)]
    method, ledger = scripted(count=3), Ledger(Budget(100))
    run(batches, method, Delayed(KnownLabels(labels), rounds=0, jitter=6), ledger)
    steps = [answer.query.step for turn in method.learned for answer in turn]
    assert steps != sorted(steps)
    assert len(steps) == ledger.received
    assert method.labels == {sample: labels[sample] for sample in method.labels}


def test_a_skipped_question_is_refunded_and_its_label_asked_elsewhere(scripted, batches, labels):
    method, ledger = scripted(), Ledger(Budget(2))
    run(batches, method, Skipping(KnownLabels(labels), rate=1), ledger)
    assert method.allowances == [2, 2, 2, 2]
    assert set(method.labels.values()) == {None}
    assert (ledger.asked, ledger.received, ledger.refunded, ledger.budget.spent) == (8, 0, 8, 0)


def test_an_expired_question_is_refunded_and_its_late_label_ignored(scripted, batches, labels):
    method, ledger = scripted(), Ledger(Budget(100))
    oracle = Expiring(Delayed(KnownLabels(labels), rounds=2), rounds=1)
    run(batches, method, oracle, ledger)
    assert set(method.labels.values()) == {None}
    assert (ledger.received, ledger.refunded, ledger.repeated) == (0, 8, 4)
    assert ledger.budget.spent == 0


def test_a_repeated_answer_is_learned_once(scripted, batches, labels):
    method, ledger = scripted(), Ledger(Budget(100))
    run(batches, method, Repeating(KnownLabels(labels)), ledger)
    assert method.turns == [2, 2, 2, 2]
    assert (ledger.received, ledger.repeated) == (8, 2 + 4 + 6)


def test_an_answer_to_a_question_never_asked_ends_the_run(scripted, batches, labels):
    oracle = KnownLabels(labels)
    oracle.ask([Query(batches[0].samples[2], step=9)])
    with pytest.raises(UnknownQuestion, match="never"):
        run(batches, scripted(), oracle, Ledger(Budget(10)))


def test_a_method_that_asks_too_much_is_caught_before_a_question_is_sent(scripted, batches, labels):
    oracle, ledger = KnownLabels(labels), Ledger(Budget(1))
    with pytest.raises(BudgetExhausted, match="at most 1"):
        run(batches, scripted(honest=False), oracle, ledger)
    assert (oracle.pending, ledger.asked, ledger.budget.spent) == (0, 0, 0)


def test_a_method_that_asks_the_same_question_twice_is_caught(scripted, batches, labels):
    oracle = KnownLabels(labels)
    with pytest.raises(LabelError, match="asked before"):
        run([batches[0], batches[0]], scripted(), oracle, Ledger(Budget(10)))


def test_an_empty_budget_lets_the_stream_pass(scripted, batches, labels):
    method, ledger = scripted(), Ledger(Budget(0))
    run(batches, method, KnownLabels(labels), ledger)
    assert method.turns == [0, 0, 0, 0]
    assert ledger.asked == 0


def test_an_empty_stream_does_nothing(scripted, labels):
    method = scripted()
    run([], method, KnownLabels(labels), Ledger(Budget(1)))
    assert method.learned == []


def test_reporters_see_every_turn(scripted, batches, labels):
    watcher = Watcher()
    run(batches, scripted(), KnownLabels(labels), Ledger(Budget(5)), [watcher])
    told = [(result.asked, result.received, result.remaining) for result in watcher.moments]
    assert told == [(2, 2, 3), (4, 4, 1), (5, 5, 0), (5, 5, 0)]
    assert [result.batch for result in watcher.moments] == batches
    assert [len(result.answers) for result in watcher.moments] == [2, 2, 1, 0]
    assert [result.training.updates for result in watcher.moments] == [2, 2, 1, 0]
    assert all(result.seconds >= 0 for result in watcher.moments)


def test_reporters_do_not_change_what_a_method_does(labels):
    def final_weights(reporters):
        method = SimATTA(tiny_classifier(), high_entropy_bound=0.0)
        batches = [tiny_batch(step) for step in range(3)]
        run(batches, method, KnownLabels(labels), Ledger(Budget(6)), reporters)
        return method.model.state_dict()

    alone, watched = final_weights([]), final_weights([Watcher(), Watcher()])
    assert same_state(alone, watched)


def test_a_batch_reaches_the_method_without_labels_or_domain():
    assert set(Batch.__slots__) == {"step", "samples", "inputs"}


def test_an_error_of_the_callback_reaches_the_caller(scripted, batches):
    def refuse(name):
        raise RuntimeError(f"no light at {name}")

    with pytest.raises(RuntimeError, match="no light at 0-0"):
        run(batches, scripted(), Callback(refuse), Ledger(Budget(2)))


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 100.0
        self.naps = []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.naps.append(seconds)
        self.now += seconds or 1e-9


def after_the_stream(scripted, batches, labels, rounds):
    method, ledger = scripted(), Ledger(Budget(100))
    oracle = Delayed(KnownLabels(labels), rounds=rounds)
    run(batches, method, oracle, ledger)
    return method, oracle, ledger


def test_drain_closes_open_questions_at_once_when_told_not_to_wait(scripted, batches, labels):
    method, oracle, ledger = after_the_stream(scripted, batches, labels, rounds=9)
    time = Time()
    training = drain(method, oracle, ledger, clock=time.clock, sleep=time.sleep)
    assert time.naps == []
    assert [answer.label for answer in method.learned[-1]] == [None] * 8
    assert (ledger.open, ledger.received, ledger.refunded) == ((), 0, 8)
    assert ledger.budget.spent == 0
    assert training.updates == 8


def test_drain_waits_for_late_answers(scripted, batches, labels):
    method, oracle, ledger = after_the_stream(scripted, batches, labels, rounds=9)
    time = Time()
    drain(method, oracle, ledger, wait=60, clock=time.clock, sleep=time.sleep, pause=1)
    assert method.turns == [0, 0, 0, 0, 8]
    assert (ledger.received, ledger.refunded, ledger.budget.spent) == (8, 0, 8)
    assert time.now < 160


class Forgetful(KnownLabels):
    """Answers questions of the first step two looks late, and no others ever."""

    looks = 0

    def collect(self):
        self.looks += 1
        answers = [answer for answer in super().collect() if answer.query.step == 0]
        self.kept = [*getattr(self, "kept", []), *answers]
        return tuple(self.kept) if self.looks == 6 else ()


def test_drain_gives_up_at_the_deadline_and_keeps_what_came(scripted, batches, labels):
    method, oracle, ledger, time = scripted(), Forgetful(labels), Ledger(Budget(100)), Time()
    run(batches, method, oracle, ledger)
    drain(method, oracle, ledger, wait=2.5, clock=time.clock, sleep=time.sleep, pause=1)
    assert time.naps == [1, 1, 0.5]
    assert (ledger.received, ledger.refunded) == (2, 6)
    assert (ledger.open, ledger.budget.spent) == ((), 2)


def test_drain_without_open_questions_does_nothing(scripted, batches, labels):
    method, oracle, ledger = after_the_stream(scripted, batches, labels, rounds=0)
    turns = len(method.learned)
    time = Time()
    training = drain(method, oracle, ledger, wait=60, clock=time.clock, sleep=time.sleep)
    assert (training.updates, len(method.learned), time.naps) == (0, turns, [])


def test_drain_passes_skips_on_to_the_method(scripted, batches, labels):
    method, ledger = scripted(), Ledger(Budget(100))
    oracle = Delayed(Skipping(KnownLabels(labels), rate=1), rounds=5)
    run(batches, method, oracle, ledger)
    time = Time()
    drain(method, oracle, ledger, wait=60, clock=time.clock, sleep=time.sleep)
    assert [answer.label for answer in method.learned[-1]] == [None] * 8
    assert {answer.annotator for answer in method.learned[-1]} == {"known"}


def test_drain_in_real_time_returns(scripted, batches, labels):
    method, oracle, ledger = after_the_stream(scripted, batches, labels, rounds=5)
    drain(method, oracle, ledger, wait=5, pause=0.001)
    assert ledger.received == 8


def test_conflicting_answers_keep_the_first(scripted, batches, labels, caplog):
    ledger = Ledger(Budget(100))

    class Wavering(KnownLabels):
        def collect(self):
            answers = super().collect()
            other = [Answer(answer.query, answer.label + 1, "other") for answer in answers]
            return (*answers, *other)

    method = scripted()
    run(batches, method, Wavering(labels), ledger)
    assert method.labels == {sample: labels[sample] for sample in method.labels}
    assert ledger.conflicting == 8


def test_drain_refuses_a_late_label_that_is_no_class_of_the_model(scripted, batches, labels):
    wrong = dict.fromkeys(labels, 7)
    method, oracle, ledger = after_the_stream(scripted, batches, wrong, rounds=9)
    time = Time()
    with pytest.raises(LabelError, match="class 7, but the model has 3 classes"):
        drain(method, oracle, ledger, wait=60, class_count=3, clock=time.clock, sleep=time.sleep)


def test_a_method_whose_step_returns_something_else_is_told():
    class Mine(SourceOnly):
        def step(self, batch, allowance):
            return super().step(batch, allowance).prediction

    with pytest.raises(SettingError, match="Mine: step must return a Step, got Prediction"):
        run([tiny_batch()], Mine(tiny_classifier()), KnownLabels({}), Ledger(Budget(0)))
