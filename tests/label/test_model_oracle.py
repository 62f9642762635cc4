"""A model as the annotator: batches, cache, retries, abstaining, and what it costs."""

import logging

import pytest

from attakit.errors import LabelError, SettingError
from attakit.label import Budget, Ledger, ModelOracle
from attakit.queries import Query, SampleId
from attakit.testing import check_oracle

SAMPLES = [SampleId(name) for name in "abcde"]
CLASSES = ["cat", "dog", "horse"]


def queries(*names, step=0):
    return [Query(SampleId(name), step) for name in names]


def said(oracle, *names, step=0):
    oracle.ask(queries(*names, step=step))
    return oracle.collect()


class Model:
    """Says what a table holds, and notes what it was asked."""

    def __init__(self, table, failures=0):
        self.table = table
        self.failures = failures
        self.calls = []

    def __call__(self, samples):
        self.calls.append(list(samples))
        if self.failures:
            self.failures -= 1
            raise ConnectionError("no route")
        return [self.table[sample] for sample in samples]


def test_it_is_asked_in_batches_in_the_order_of_the_questions():
    model = Model(dict.fromkeys(SAMPLES, 1))
    answers = said(ModelOracle(model, batch_size=2), *SAMPLES)

    assert model.calls == [["a", "b"], ["c", "d"], ["e"]]
    assert [answer.query.sample for answer in answers] == SAMPLES


@pytest.mark.parametrize(
    ("given", "kind", "content"),
    [
        (2, "label", {"label": 2}),
        ("dog", "label", {"label": 1}),
        ([0.2, 0.8, 0.0], "soft", {"chances": (0.2, 0.8, 0.0)}),
        ({"dog": 3, "cat": 1}, "soft", {"chances": (1.0, 3.0, 0.0)}),
        ({"cat", "dog"}, "among", {"among": (0, 1)}),
        (None, "skipped", {}),
    ],
)
def test_it_may_say_a_class_chances_several_classes_or_nothing(given, kind, content):
    (answer,) = said(ModelOracle(Model({"a": given}), classes=CLASSES, annotator="clip"), "a")

    assert (answer.kind, answer.annotator) == (kind, "clip")
    assert {name: getattr(answer, name) for name in content} == content


def test_a_sample_is_shown_once_and_its_answer_kept():
    model = Model({"a": 1, "b": None, "c": [0.5, 0.5]})
    oracle = ModelOracle(model)
    first = said(oracle, "a", "b", "c", step=0)
    second = said(oracle, "c", "b", "a", step=1)

    assert len(model.calls) == 1
    assert [answer.kind for answer in first] == [answer.kind for answer in second][::-1]
    assert {answer.query.step for answer in second} == {1}


def test_the_cache_is_bounded_and_lets_the_oldest_go():
    model = Model({"a": 1, "b": 1, "c": 1})
    oracle = ModelOracle(model, capacity=2)
    for name in ("a", "b", "c", "b", "a"):
        said(oracle, name)

    assert model.calls == [["a"], ["b"], ["c"], ["a"]]


def test_a_cached_answer_serves_yes_no_questions_too():
    oracle = ModelOracle(Model({"a": 1}))
    oracle.ask([Query(SampleId("a"), 0, proposed=1), Query(SampleId("a"), 1, proposed=0)])

    assert [answer.kind for answer in oracle.collect()] == ["yes", "no"]


def test_a_failed_call_is_tried_again_after_growing_pauses():
    pauses = []
    model = Model({"a": 1}, failures=2)
    oracle = ModelOracle(model, retries=2, pause=0.5, sleep=pauses.append)

    assert [answer.label for answer in said(oracle, "a")] == [1]
    assert (pauses, oracle.calls) == ([0.5, 1.0], 3)


def test_after_the_last_try_questions_are_skipped_and_nothing_is_cached(caplog):
    model = Model({"a": 1}, failures=2)
    oracle = ModelOracle(model, retries=1, sleep=lambda _: None)

    with caplog.at_level(logging.WARNING):
        assert [answer.kind for answer in said(oracle, "a")] == ["skipped"]
    assert "no route" in caplog.text
    assert [answer.kind for answer in said(oracle, "a", step=1)] == ["label"]


def test_other_errors_reach_the_caller_and_lose_no_question():
    def broken(samples):
        raise ValueError("a bug")

    oracle = ModelOracle(broken)
    oracle.ask(queries("a"))
    with pytest.raises(ValueError, match="a bug"):
        oracle.collect()
    assert oracle.pending == 1


def test_it_abstains_where_it_is_not_confident():
    model = Model({"a": [7, 3], "b": [1, 1], "c": 0})
    kinds = [answer.kind for answer in said(ModelOracle(model, least_confidence=0.7), *"abc")]

    assert kinds == ["soft", "skipped", "label"]


def test_chances_can_become_labels_with_a_weight():
    (answer,) = said(ModelOracle(Model({"a": [0.1, 0.9]}), soft=False, weight=0.5), "a")

    assert (answer.label, answer.chances, answer.weight) == (1, None, 0.5)


def test_an_answer_costs_its_price_and_the_rest_is_refunded():
    oracle = ModelOracle(Model({"a": 1, "b": 1, "c": None}), price=0.1)
    ledger = Ledger(Budget(3))
    asked = queries(*"abc")
    ledger.ask(asked)
    oracle.ask(asked)
    ledger.settle(oracle.collect())

    assert (ledger.cost, ledger.budget.spent, ledger.budget.remaining) == (0.2, 0.2, 2.8)
    assert (ledger.received, ledger.refunded) == (2, 1)


def test_a_ledger_never_pays_more_than_the_price_of_the_question_and_remembers_costs():
    oracle = ModelOracle(Model({"a": 1, "b": 0}), price=7)
    ledger = Ledger(Budget(2))
    ledger.ask(queries("a"))
    oracle.ask(queries("a"))
    ledger.settle(oracle.collect())
    assert ledger.cost == 1

    cheap = Ledger(Budget(2))
    oracle.price = 0.25
    cheap.ask(queries("b"))
    oracle.ask(queries("b"))
    cheap.settle(oracle.collect())
    resumed = Ledger(Budget(2))
    resumed.load_state_dict(cheap.state_dict())
    assert (resumed.cost, resumed.budget.remaining) == (0.25, 1.75)
    resumed.forget(["b"])
    assert resumed.cost == 0.25


def test_it_keeps_the_promises_of_oracles():
    table = {name: [0.6, 0.4] if name == "b" else place for place, name in enumerate(SAMPLES)}
    check_oracle(lambda: ModelOracle(Model(table), batch_size=2, price=0.5), SAMPLES)


def test_it_must_answer_about_every_sample():
    with pytest.raises(LabelError, match="gave 1 answers about 2 samples"):
        said(ModelOracle(lambda samples: [1]), "a", "b")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "ModelOracle: batch_size"),
        ({"least_confidence": 2}, "ModelOracle: least_confidence"),
        ({"price": -1}, "ModelOracle: price"),
        ({"retries": -1}, "ModelOracle: retries"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        ModelOracle(Model({}), **settings)
    with pytest.raises(SettingError, match="must take a list"):
        ModelOracle("gpt")
