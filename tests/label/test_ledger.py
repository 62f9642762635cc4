"""Questions and budget stay in step, whatever happens to the answers."""

import io
import logging
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import BudgetExhausted, LabelError, StateError, UnknownQuestion
from attakit.label import Budget, Ledger
from attakit.queries import Answer, Query, SampleId


def question(name: str, step: int = 0) -> Query:
    return Query(SampleId(name), step)


def asked(*names: str, limit: int | None = 10) -> tuple[Ledger, list[Query]]:
    ledger, queries = Ledger(Budget(limit)), [question(name) for name in names]
    ledger.ask(queries)
    return ledger, queries


def test_asking_spends_and_opens() -> None:
    ledger, queries = asked("a", "b")

    assert ledger.open == tuple(queries)
    assert (ledger.asked, ledger.received, ledger.budget.spent) == (2, 0, 2)


def test_answers_are_passed_on_in_order_of_arrival() -> None:
    ledger, (first, second) = asked("a", "b")
    answers = (Answer(second, 1, "Ada"), Answer(first, 0, "Ada"))

    assert ledger.settle(answers) == answers
    assert (ledger.open, ledger.received, ledger.budget.spent) == ((), 2, 2)


def test_late_answer_is_passed_on_after_other_questions() -> None:
    ledger, (first,) = asked("a")
    ledger.ask([question("a", step=1)])

    assert ledger.settle([Answer(first, 2, "Ada")]) == (Answer(first, 2, "Ada"),)
    assert ledger.open == (question("a", step=1),)


def test_skipped_question_is_passed_on_and_refunded() -> None:
    ledger, (first, _) = asked("a", "b")

    fresh = ledger.settle([Answer(first, None, "Ada")])

    assert fresh == (Answer(first, None, "Ada"),)
    assert (ledger.refunded, ledger.received, ledger.budget.spent) == (1, 0, 1)


def test_repeated_answer_is_ignored_and_counted() -> None:
    ledger, (first,) = asked("a")
    answer = Answer(first, 2, "Ada")

    assert ledger.settle([answer, answer]) == (answer,)
    assert ledger.settle([answer]) == ()
    assert (ledger.received, ledger.repeated, ledger.conflicting) == (1, 2, 0)


def test_repeated_skip_is_refunded_once() -> None:
    ledger, (first, _) = asked("a", "b")

    ledger.settle([Answer(first, None, "Ada")] * 3)

    assert (ledger.refunded, ledger.repeated, ledger.budget.spent) == (1, 2, 1)


def test_first_of_two_conflicting_answers_stays(caplog: pytest.LogCaptureFixture) -> None:
    ledger, (first,) = asked("a")
    ledger.settle([Answer(first, 2, "Ada")])

    with caplog.at_level(logging.WARNING):
        fresh = ledger.settle([Answer(first, 1, "Bob")])

    assert fresh == ()
    assert (ledger.repeated, ledger.conflicting) == (1, 1)
    assert caplog.messages == [
        "the question about sample 'a' (step 0) was answered 2 before and is now answered 1 by "
        "Bob. The first answer stays."
    ]


@pytest.mark.parametrize(("before", "after"), [(None, 1), (1, None)])
def test_label_beside_a_skip_is_no_conflict(
    before: int | None, after: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    ledger, (first,) = asked("a")

    ledger.settle([Answer(first, before, "Ada"), Answer(first, after, "Ada")])

    assert (ledger.repeated, ledger.conflicting, caplog.messages) == (1, 0, [])
    assert ledger.received == (before is not None)


def test_answer_to_nothing_asked_raises_and_changes_nothing() -> None:
    ledger, (first,) = asked("a")
    stranger = Answer(question("z", step=4), 0, "Ada")

    with pytest.raises(UnknownQuestion) as caught:
        ledger.settle([Answer(first, 2, "Ada"), stranger])

    assert str(caught.value) == (
        "Ledger: Ada answered the question about sample 'z' (step 4), which was never "
        "asked. An oracle may only answer the questions it was given."
    )
    assert (ledger.open, ledger.received) == ((first,), 0)


def test_asking_twice_raises_and_changes_nothing() -> None:
    ledger, (first, second) = asked("a", "b")
    ledger.settle([Answer(second, 0, "Ada")])

    for queries in ([first], [second], [question("c"), question("c")]):
        with pytest.raises(LabelError, match=r"was asked before\. Ask each question once\."):
            ledger.ask(queries)

    assert (ledger.asked, ledger.budget.spent) == (2, 2)


def test_asking_beyond_the_budget_raises_and_changes_nothing() -> None:
    ledger, (first,) = asked("a", limit=2)

    with pytest.raises(BudgetExhausted):
        ledger.ask([question("b"), question("c")])

    assert (ledger.open, ledger.budget.spent) == ((first,), 1)


def test_refunded_label_can_be_spent_again() -> None:
    ledger, (first,) = asked("a", limit=1)
    ledger.settle([Answer(first, None, "Ada")])

    ledger.ask([question("b")])

    assert ledger.open == (question("b"),)


def test_expiry_closes_and_refunds_every_open_question() -> None:
    ledger, (first, second, third) = asked("a", "b", "c")
    ledger.settle([Answer(second, 0, "Ada")])

    expired = ledger.expire()

    assert expired == (Answer(first, None, "expired"), Answer(third, None, "expired"))
    assert (ledger.open, ledger.refunded, ledger.budget.spent) == ((), 2, 1)
    assert ledger.expire() == ()


def test_answer_after_expiry_is_a_repeat() -> None:
    ledger, (first,) = asked("a")
    ledger.expire()

    assert ledger.settle([Answer(first, 1, "Ada")]) == ()
    assert (ledger.repeated, ledger.received, ledger.budget.spent) == (1, 0, 0)


@pytest.mark.parametrize("label", [-1, 1.0, "dog", True])
def test_label_that_is_no_class_index_raises_and_changes_nothing(label: object) -> None:
    ledger, (first,) = asked("a")

    with pytest.raises(LabelError, match="Ledger: the label of sample 'a' is"):
        ledger.settle([Answer(first, label, "Ada")])  # type: ignore[arg-type]

    assert ledger.open == (first,)


@pytest.mark.parametrize("label", [np.int64(2), torch.tensor(2)])
def test_label_out_of_an_array_becomes_a_plain_number(label: object) -> None:
    ledger, (first,) = asked("a")

    (answer,) = ledger.settle([Answer(first, label, "Ada")])  # type: ignore[arg-type]

    assert type(answer.label) is int
    assert answer.label == 2


def test_state_continues_with_the_same_books() -> None:
    ledger, (first, second, third) = asked("a", "b", "c")
    ledger.settle([Answer(second, 0, "Ada"), Answer(second, 1, "Bob"), Answer(first, None, "Ada")])
    ledger.settle([Answer(second, 0, "Ada")])

    other = resumed(ledger, limit=10)

    assert (other.open, other.asked, other.received, other.refunded) == ((third,), 3, 1, 1)
    assert (other.repeated, other.conflicting, other.budget.spent) == (2, 1, 2)


def test_state_with_numbered_questions_of_an_earlier_version_is_read() -> None:
    ledger, (first, second) = asked("a", "b")
    ledger.settle([Answer(first, 2, "Ada")])
    old = {**ledger.state_dict(), "open": [["b", 0, 0]], "settled": [["a", 0, 0, 2]]}

    other = Ledger(Budget(10))
    other.load_state_dict(old)

    assert (other.open, other.labelled) == ((second,), {"a"})
    assert other.state_dict() == ledger.state_dict()


def test_state_of_something_else_is_refused() -> None:
    with pytest.raises(StateError) as caught:
        Ledger(Budget(1)).load_state_dict({"open": []})

    assert str(caught.value) == (
        "Ledger: the saved state has the entries open, expected budget, conflicting, open, "
        "repeated, settled. Resume with the same parts in the same order that the run was "
        "started with."
    )


NEVER_ASKED = 99
NO = "no"
PRICE = 0.3  # of a yes/no question: a number that floats cannot add up exactly
SAID = st.none() | st.integers(0, 2) | st.just(NO)
MOVES = st.one_of(
    st.tuples(st.just("ask"), st.lists(st.integers(0, 9), max_size=4)),
    st.tuples(st.just("settle"), st.lists(st.tuples(st.integers(0, 20), SAID), max_size=6)),
    st.tuples(st.just("expire"), st.none()),
    st.tuples(st.just("resume"), st.none()),
)


Said = int | str | None


def numbered(number: int) -> Query:
    """Question number so and so; every other one proposes a class."""
    return Query(SampleId(str(number)), 0, proposed=number % 3 if number % 2 else None)


def total(numbers: Iterable[int]) -> Fraction:
    return sum((Fraction(3, 10) if number % 2 else Fraction(1) for number in numbers), Fraction())


def to_answer(number: int, said: Said) -> Answer:
    if said == NO:
        return Answer(numbered(number), None, "Ada", excluded=(number % 3,))
    assert not isinstance(said, str)
    return Answer(numbered(number), said, "Ada")


def said_by(answer: Answer) -> Said:
    return NO if answer.excluded else answer.label


class Model:
    """The same rules as the ledger's, written as plainly as possible."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.first: dict[int, Said] = {}  # "open", or what the first answer says
        self.repeated = 0

    def spent(self) -> Fraction:
        return total(number for number, said in self.first.items() if said is not None)

    def may_ask(self, numbers: list[int]) -> bool:
        is_new = len(set(numbers)) == len(numbers) and not set(numbers) & set(self.first)
        return is_new and self.spent() + total(numbers) <= self.limit

    def settle(self, answers: list[tuple[int, Said]]) -> list[tuple[int, Said]]:
        fresh = []
        for number, label in answers:
            if self.first[number] == "open":
                self.first[number] = label
                fresh.append((number, label))
            else:
                self.repeated += 1
        return fresh


@given(limit=st.integers(0, 8), moves=st.lists(MOVES, max_size=30))
def test_whatever_happens_the_books_agree(limit: int, moves: list[tuple[str, object]]) -> None:
    ledger, model = Ledger(Budget(limit, yes_no_price=PRICE)), Model(limit)
    for kind, detail in moves:
        if kind == "resume":
            ledger = resumed(ledger, limit, PRICE)
        else:
            {"ask": ask_both, "settle": settle_both, "expire": expire_both}[kind](
                ledger, model, detail
            )
        compare(ledger, model)


def ask_both(ledger: Ledger, model: Model, numbers: list[int]) -> None:
    queries = [numbered(number) for number in numbers]
    if model.may_ask(numbers):
        ledger.ask(queries)
        model.first.update(dict.fromkeys(numbers, "open"))
    else:
        with pytest.raises(LabelError):
            ledger.ask(queries)


def settle_both(ledger: Ledger, model: Model, choices: list[tuple[int, Said]]) -> None:
    known = [*model.first, *model.first, NEVER_ASKED]  # most answers are to real questions
    answers = [(known[choice % len(known)], said) for choice, said in choices]
    arriving = [to_answer(number, said) for number, said in answers]
    if any(number not in model.first for number, _ in answers):
        with pytest.raises(UnknownQuestion):
            ledger.settle(arriving)
    else:
        settled = ledger.settle(arriving)
        fresh = [(int(answer.query.sample), said_by(answer)) for answer in settled]
        assert fresh == model.settle(answers)


def expire_both(ledger: Ledger, model: Model, _: object) -> None:
    expired = [int(answer.query.sample) for answer in ledger.expire()]
    assert expired == [number for number, label in model.first.items() if label == "open"]
    model.settle([(number, None) for number in expired])


def resumed(ledger: Ledger, limit: int, price: float = 1.0) -> Ledger:
    file = io.BytesIO()
    torch.save(ledger.state_dict(), file)
    file.seek(0)
    other = Ledger(Budget(limit, yes_no_price=price))
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


def compare(ledger: Ledger, model: Model) -> None:
    states = list(model.first.values())
    assert ledger.asked == len(states)
    assert ledger.repeated == model.repeated
    assert ledger.refunded == states.count(None)
    assert ledger.received == len(states) - states.count(None) - states.count("open")
    assert [int(query.sample) for query in ledger.open] == [
        number for number, label in model.first.items() if label == "open"
    ]
    paid = [number for number, said in model.first.items() if said not in (None, "open")]
    assert ledger.cost == pytest.approx(float(total(paid)), abs=0)
    assert ledger.budget.spent == float(model.spent()) <= model.limit
    left = model.limit - model.spent()
    assert ledger.budget.allowance.count == left // 1
    assert ledger.budget.allowance.yes_no == left // Fraction(3, 10)
    assert sum(ledger.counts.values()) == ledger.received


def test_the_labelled_are_those_for_which_a_label_came() -> None:
    ledger, (first, second, _) = asked("a", "b", "c")

    ledger.settle([Answer(first, 1, "Ada"), Answer(second, None, "Ada")])

    assert ledger.labelled == {SampleId("a")}


def test_a_no_is_paid_and_counted_and_a_skip_is_refunded() -> None:
    ledger = Ledger(Budget(10, yes_no_price=0.25))
    cat, dog = (Query(SampleId(name), 0, proposed=1) for name in ("a", "b"))
    ledger.ask([cat, dog, question("c")])

    ledger.settle([Answer.no(cat, "Ada"), Answer.skipped(dog, "Ada"), Answer(question("c"), 2, "")])

    assert ledger.counts == {"no": 1, "label": 1}
    assert (ledger.cost, ledger.budget.spent, ledger.budget.remaining) == (1.25, 1.25, 8.75)
    assert ledger.labelled == {"a", "c"}
    assert ledger.state_dict()["settled"][0] == ["a", 0, {"proposed": 1}, {"excluded": [1]}]


def test_yes_after_no_is_a_conflict_and_another_weight_is_none() -> None:
    ledger, query = Ledger(Budget(10)), Query(SampleId("a"), 0, proposed=1)
    ledger.ask([query])
    no = Answer.no(query, "Ada")

    ledger.settle([no, Answer(query, None, "Bob", excluded=(1,), weight=0.5)])
    assert (ledger.repeated, ledger.conflicting) == (1, 0)
    ledger.settle([Answer.yes(query, "Bob")])
    assert (ledger.repeated, ledger.conflicting) == (2, 1)


def test_forgetting_removes_what_was_said_but_not_what_it_cost() -> None:
    ledger, query = Ledger(Budget(10, yes_no_price=0.5)), Query(SampleId("a"), 0, proposed=1)
    ledger.ask([query])
    ledger.settle([Answer.no(query, "Ada")])

    ledger.forget(["a"])

    assert (ledger.received, ledger.cost, ledger.counts) == (1, 0.5, {"forgotten": 1})
    assert "excluded" not in str(ledger.state_dict())


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"excluded": (-1,)}, "the label of sample 'a' is -1"),
        ({"among": (0,), "excluded": (1,)}, "with excluded and among. Give one of them."),
        ({"chances": (0.5, -0.1)}, "Each must be 0 or more"),
        ({"chances": (0.0, 0.0)}, "one of them above 0"),
        ({"excluded": (1,), "weight": float("nan")}, "has the weight nan"),
    ],
)
def test_an_answer_that_makes_no_sense_changes_nothing(said: dict, complaint: str) -> None:
    ledger, (first,) = asked("a")

    with pytest.raises(LabelError, match=complaint):
        ledger.settle([Answer(first, None, "Ada", **said)])

    assert ledger.open == (first,)
