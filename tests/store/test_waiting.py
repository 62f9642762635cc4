import pytest
import torch

from attakit.queries import Answer, Query
from attakit.records import LabelledRows, Prediction
from attakit.store.waiting import UNKNOWN, Waiting


def rows(*names):
    count = len(names)
    inputs = torch.tensor([float(ord(name)) for name in names]).reshape(count, 1)
    unknown = torch.full((count,), UNKNOWN)
    return LabelledRows(
        names, inputs, unknown, inputs.clone(), torch.zeros(count, 2), torch.ones(count)
    )


def answer(query, label):
    return Answer(query, label, "tester")


def test_held_samples_become_questions_of_their_step():
    waiting = Waiting()

    queries = waiting.hold(rows("a", "b"), step=3)

    assert queries == (Query("a", 3), Query("b", 3))
    assert waiting.rows.samples == ("a", "b")
    assert len(waiting) == 2


def test_holding_nothing_asks_nothing():
    waiting = Waiting()

    assert waiting.hold(rows(), step=0) == ()
    assert len(waiting) == 0


def test_an_answer_takes_its_sample_out_with_its_label_and_input():
    waiting = Waiting()
    _, second = waiting.hold(rows("a", "b"), step=0)

    resolved = waiting.resolve([answer(second, 5)])

    assert resolved.samples == ("b",)
    assert resolved.labels.tolist() == [5]
    assert resolved.labels.dtype == torch.int64
    assert resolved.inputs.tolist() == [[float(ord("b"))]]
    assert waiting.rows.samples == ("a",)


def test_late_answers_out_of_order_reach_their_own_samples():
    waiting = Waiting()
    (first,) = waiting.hold(rows("a"), step=0)
    second, third = waiting.hold(rows("b", "c"), step=1)

    resolved = waiting.resolve([answer(third, 3), answer(first, 1)])
    rest = waiting.resolve([answer(second, 2)])

    assert dict(zip(resolved.samples, resolved.labels.tolist(), strict=True)) == {"a": 1, "c": 3}
    assert (rest.samples, rest.labels.tolist()) == (("b",), [2])
    assert len(waiting) == 0


def test_a_skipped_sample_is_dropped():
    waiting = Waiting()
    first, second = waiting.hold(rows("a", "b"), step=0)

    resolved = waiting.resolve([answer(first, None), answer(second, 1)])

    assert resolved.samples == ("b",)
    assert len(waiting) == 0


def test_only_skips_give_no_rows():
    waiting = Waiting()
    (query,) = waiting.hold(rows("a"), step=0)

    resolved = waiting.resolve([answer(query, None)])

    assert len(resolved) == 0
    assert resolved.labels.dtype == torch.int64


def test_a_repeated_answer_counts_once():
    waiting = Waiting()
    (query,) = waiting.hold(rows("a"), step=0)

    resolved = waiting.resolve([answer(query, 1), answer(query, 1)])

    assert resolved.samples == ("a",)
    assert waiting.resolve([answer(query, 1)]) is None


@pytest.mark.parametrize("answers", [[], [answer(Query("stranger", 0), 1)]])
def test_no_answers_and_answers_to_other_questions_change_nothing(answers):
    waiting = Waiting()
    waiting.hold(rows("a"), step=0)

    assert waiting.resolve(answers) is None
    assert waiting.rows.samples == ("a",)


def test_answers_before_anything_was_asked_are_ignored():
    assert Waiting().resolve([answer(Query("a", 0), 1)]) is None


def test_waiting_samples_can_be_reweighted_and_refreshed():
    waiting = Waiting()
    waiting.hold(rows("a", "b"), step=0)

    waiting.reweight({"b": 2.5})
    waiting.refresh(lambda inputs: Prediction(inputs.repeat(1, 2), inputs + 1))

    assert waiting.rows.weights.tolist() == [1.0, 2.5]
    assert torch.equal(waiting.rows.features, waiting.rows.inputs + 1)


def test_weights_given_while_waiting_stay_with_the_answer():
    waiting = Waiting()
    (query,) = waiting.hold(rows("a"), step=0)
    waiting.reweight({"a": 4.0})

    resolved = waiting.resolve([answer(query, 0)])

    assert resolved.weights.tolist() == [4.0]


def test_empty_waiting_accepts_reweight_and_refresh():
    waiting = Waiting()

    waiting.reweight({"a": 1.0})
    waiting.refresh(lambda inputs: pytest.fail("nothing to predict"))

    assert len(waiting) == 0


def test_restored_waiting_resolves_like_the_original():
    waiting = Waiting()
    queries = waiting.hold(rows("a", "b", "c"), step=1)
    restored = Waiting()
    restored.load_state_dict(waiting.state_dict())

    resolved = restored.resolve([answer(query, 4) for query in queries[1:]])

    assert resolved.samples == ("b", "c")
    assert restored.rows.samples == ("a",)


def test_a_state_with_numbered_questions_of_an_earlier_version_is_restored():
    waiting = Waiting()
    queries = waiting.hold(rows("a", "b"), step=1)
    old = {**waiting.state_dict(), "queries": [["a", 1, 0], ["b", 1, 0]]}
    restored = Waiting()
    restored.load_state_dict(old)

    resolved = restored.resolve([answer(queries[1], 4)])

    assert resolved.samples == ("b",)
    assert restored.state_dict()["queries"] == [["a", 1]]


def test_an_empty_state_is_restored_empty():
    restored = Waiting()

    restored.load_state_dict(Waiting().state_dict())

    assert len(restored) == 0


def test_proposals_become_yes_no_questions_that_survive_saving():
    waiting, other = Waiting(), Waiting()
    queries = waiting.hold(rows("a", "b"), step=3, proposals={"a": 1, "b": 0})

    other.load_state_dict(waiting.state_dict())
    resolved = other.resolve([Answer.no(queries[0], "me"), Answer.yes(queries[1], "me")])

    assert queries == (Query("a", 3, proposed=1), Query("b", 3, proposed=0))
    assert resolved.labels.tolist() == [UNKNOWN, 0]
    assert resolved.targets.shares.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert resolved.targets.open.tolist() == [True, False]
    assert len(other) == 0


def test_labels_alone_need_no_targets():
    waiting = Waiting()
    (query,) = waiting.hold(rows("a"), step=3, proposals={"a": 1})

    assert waiting.resolve([Answer.yes(query, "me")]).targets is None


def none_of_these(query):
    return Answer(query, None, "me", excluded=(0, 1))


def test_what_belongs_to_no_class_is_not_learned_from_and_stays_covered():
    waiting = Waiting()
    first, _ = waiting.hold(rows("a", "b"), step=3)

    resolved = waiting.resolve([none_of_these(first)])

    assert len(resolved) == 0
    assert waiting.rows.samples == ("a", "b")
    assert (waiting.outside, waiting.open_samples) == (1, {"b"})
    waiting.forget(["a"])
    assert (waiting.outside, waiting.rows.samples) == (0, ("b",))


def test_what_belongs_to_no_class_is_saved_and_never_answered_twice():
    waiting, loaded = Waiting(), Waiting()
    (query,) = waiting.hold(rows("a"), step=3)
    waiting.resolve([none_of_these(query)])

    loaded.load_state_dict(waiting.state_dict())

    assert (loaded.outside, loaded.rows.samples) == (1, ("a",))
    assert loaded.resolve([answer(query, 1)]) is None


def test_only_the_newest_samples_of_no_class_are_kept():
    waiting = Waiting()
    names = [chr(number) for number in range(65, 65 + 120)]
    for query in waiting.hold(rows(*names), step=0):
        waiting.resolve([none_of_these(query)])

    assert waiting.outside == 100
    assert waiting.rows.samples == tuple(names[20:])
