"""The caller's own function as the oracle."""

import numpy as np
import pytest

from attakit.errors import LabelError, SettingError
from attakit.label import Callback
from attakit.queries import Answer, Query, SampleId

A, B, C = (Query(SampleId(name), 0) for name in "abc")
PETS = ["cat", "dog"]


def label_of(value: object, classes: list[str] | None = None) -> int | None:
    oracle = Callback(lambda name: value, classes=classes)  # type: ignore[arg-type, return-value]
    oracle.ask([A])
    (answer,) = oracle.collect()
    return answer.label


def test_function_gets_names_in_order_and_only_when_collecting() -> None:
    seen: list[str] = []
    oracle = Callback(lambda name: seen.append(name) or 1, annotator="Ada")

    oracle.ask([B, A])
    assert seen == []
    assert oracle.pending == 2

    assert oracle.collect() == (Answer(B, 1, "Ada"), Answer(A, 1, "Ada"))
    assert seen == ["b", "a"]
    assert oracle.pending == 0


@pytest.mark.parametrize(
    ("value", "classes", "label"),
    [
        (1, None, 1),
        (1, PETS, 1),
        ("dog", PETS, 1),
        (np.int64(0), PETS, 0),
        (np.str_("cat"), PETS, 0),
        (None, None, None),
        (None, PETS, None),
    ],
)
def test_index_name_and_none_are_understood(
    value: object, classes: list[str] | None, label: int | None
) -> None:
    found = label_of(value, classes)

    assert found == label
    assert type(found) in (int, type(None))


@pytest.mark.parametrize(
    ("value", "classes", "message"),
    [
        (
            "god",
            PETS,
            "Callback: the label of sample 'a' is 'god', which is not a class. Classes: cat, dog.",
        ),
        (
            "dog",
            None,
            "Callback: the label of sample 'a' is the text 'dog', but only class indices are "
            "known here. Give a class index, or use Callback with classes=[…].",
        ),
        (
            2,
            PETS,
            "Callback: the label of sample 'a' is 2, but a class index is from 0 to 1. "
            "Use None for a sample without a label.",
        ),
        (
            -1,
            None,
            "Callback: the label of sample 'a' is -1, but a class index is 0 or more. "
            "Use None for a sample without a label.",
        ),
        (
            1.0,
            PETS,
            "Callback: the label of sample 'a' is 1.0 (float); it must be a class index "
            "(a whole number), a class name, or None to skip.",
        ),
        (
            True,
            PETS,
            "Callback: the label of sample 'a' is True (bool); it must be a class index "
            "(a whole number), a class name, or None to skip.",
        ),
    ],
)
def test_wrong_answer_is_named(value: object, classes: list[str] | None, message: str) -> None:
    with pytest.raises(LabelError) as caught:
        label_of(value, classes)

    assert str(caught.value) == message


def test_error_inside_the_function_arrives_unchanged_and_loses_no_answer() -> None:
    problem = KeyError("b")
    calls: list[str] = []

    def function(name: SampleId) -> int:
        calls.append(name)
        if calls == ["a", "b"]:
            raise problem
        return len(calls)

    oracle = Callback(function)
    oracle.ask([A, B, C])
    with pytest.raises(KeyError) as caught:
        oracle.collect()

    assert caught.value is problem
    assert oracle.pending == 3
    resumed = Callback(function)
    resumed.load_state_dict(oracle.state_dict())
    assert [answer.label for answer in resumed.collect()] == [1, 3, 4]
    assert calls == ["a", "b", "b", "c"]


def test_something_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(SettingError) as caught:
        Callback({"a": 1})  # type: ignore[arg-type]

    assert str(caught.value) == (
        "Callback: the function must take a sample's name and return its class, got {'a': 1}. "
        "For a table of labels use KnownLabels."
    )


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ("cat", "Callback: classes must be a list of names, got the text 'cat'."),
        ([], "Callback: classes must have at least one name, got none."),
        ([1, 2], "Callback: every class needs a name that is a text, got 1."),
        (["cat", " "], "Callback: every class needs a name that is a text, got ' '."),
        (["cat", "cat"], "Callback: the class 'cat' is listed twice. List it once."),
    ],
)
def test_unusable_class_names_are_refused(classes: list[str], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        Callback(len, classes=classes)

    assert str(caught.value) == message


PROPOSING = Query(SampleId("a"), 0, proposed=1)


@pytest.mark.parametrize(
    ("query", "said", "expected"),
    [
        (PROPOSING, "dog", {"label": 1}),
        (PROPOSING, "cat", {"label": None, "excluded": (1,)}),
        (PROPOSING, True, {"label": 1}),
        (PROPOSING, False, {"label": None, "excluded": (1,)}),
        (A, {"dog", "cat"}, {"label": None, "among": (0, 1)}),
        (A, {"dog": 0.75, 0: 0.25}, {"label": None, "chances": (0.25, 0.75)}),
        (A, [0.5, 0.5], {"label": None, "chances": (0.5, 0.5)}),
    ],
)
def test_a_function_may_say_more_than_a_class(query, said, expected) -> None:
    oracle = Callback(lambda name: said, classes=["cat", "dog"])
    oracle.ask([query])

    assert oracle.collect() == (Answer(query, annotator="callback", **expected),)


def test_a_function_that_confirms_gets_the_proposed_class() -> None:
    shown = []

    def confirm(name, proposed):
        shown.append((name, proposed))
        return None

    oracle = Callback(lambda name: "cat", confirm=confirm, classes=["cat", "dog"])
    oracle.ask([PROPOSING, B])

    assert [answer.kind for answer in oracle.collect()] == ["skipped", "label"]
    assert shown == [("a", "dog")]


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (set(), "is empty. Return None to skip"),
        ({0: 1.0}, "the class names are unknown"),
        (True, "is True"),
    ],
)
def test_what_cannot_be_read_is_refused(said, complaint) -> None:
    oracle = Callback(lambda name: said)
    oracle.ask([A])

    with pytest.raises(LabelError, match=complaint):
        oracle.collect()


def test_a_confirmation_is_true_or_false() -> None:
    oracle = Callback(lambda name: 0, confirm=lambda name, proposed: 1)
    oracle.ask([PROPOSING])

    with pytest.raises(LabelError, match="confirm must return True, False or None for sample 'a'"):
        oracle.collect()
