"""A person at the keyboard, played by a list of lines."""

from collections.abc import Sequence

import pytest

from attakit.errors import SettingError
from attakit.label import Terminal
from attakit.queries import Answer, Query, SampleId

ANIMALS = ["dog", "elephant", "dolphin", "Sheep"]
PROMPT = "Class (Enter skips, ? lists): "


class Person:
    """Types the lines given, then end of input; keeps what the screen showed."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.screen: list[str] = []

    def read(self, prompt: str) -> str:
        self.screen.append(prompt)
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)


def labels(person: Person, *, classes: Sequence[str] = ANIMALS, count: int = 1) -> list[int | None]:
    oracle = Terminal(
        classes, where="pictures/{}".format, read=person.read, write=person.screen.append
    )
    oracle.ask([Query(SampleId(f"{number}.png"), 0) for number in range(count)])
    return [answer.label for answer in oracle.collect()]


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("1", 0),
        ("4", 3),
        (" 2 ", 1),
        ("dog", 0),
        ("DOG", 0),
        ("e", 1),
        ("dol", 2),
        ("sh", 3),
        ("", None),
        ("s", None),
    ],
)
def test_number_name_beginning_and_skip_are_understood(line: str, label: int | None) -> None:
    person = Person(line)

    assert labels(person) == [label]
    assert person.screen == [
        "Which class is pictures/0.png?",
        "  1 dog  2 elephant  3 dolphin  4 Sheep",
        PROMPT,
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("do", "'do' may be dog, dolphin. Type more of the name."),
        ("5", "'5' is not a class. Type a number from 1 to 4, a name or its beginning."),
        ("0", "'0' is not a class. Type a number from 1 to 4, a name or its beginning."),
        ("cow", "'cow' is not a class. Type a number from 1 to 4, a name or its beginning."),
    ],
)
def test_bad_line_is_explained_and_asked_again(line: str, complaint: str) -> None:
    person = Person(line, "1")

    assert labels(person) == [0]
    assert person.screen[2:] == [PROMPT, complaint, PROMPT]


def test_question_mark_lists_the_classes_again() -> None:
    person = Person("?", "2")

    assert labels(person) == [1]
    assert person.screen.count("  1 dog  2 elephant  3 dolphin  4 Sheep") == 2


def test_end_of_input_skips_all_the_rest() -> None:
    person = Person("1")

    assert labels(person, count=4) == [0, None, None, None]
    assert person.screen[-1] == "No more input: the remaining questions are skipped."
    assert person.screen.count(PROMPT) == 2


def test_after_end_of_input_later_questions_are_skipped_too() -> None:
    person = Person()
    oracle = Terminal(ANIMALS, read=person.read, write=person.screen.append)
    oracle.ask([Query(SampleId("a"), 0)])
    oracle.collect()
    person.lines = ["1"]

    oracle.ask([Query(SampleId("b"), 1)])

    assert [answer.label for answer in oracle.collect()] == [None]
    assert person.lines == ["1"]


def test_classes_named_by_numbers_are_meant_by_name() -> None:
    person = Person("1", "11", "2")

    assert labels(person, classes=["0", "1", "2"], count=2) == [1, 2]
    assert person.screen[1] == "  0  1  2"
    assert "'11' is not a class. Type a name or its beginning." in person.screen


def test_exact_name_wins_over_skip_list_and_beginning() -> None:
    person = Person("s", "?", "dog", "")

    assert labels(person, classes=["s", "?", "dogfish", "dog"], count=4) == [0, 1, 3, None]


def test_whole_name_in_other_letters_wins_over_a_beginning() -> None:
    assert labels(Person("DOG"), classes=["dogfish", "dog"]) == [1]


def test_long_list_of_classes_is_broken_between_classes() -> None:
    person = Person("")

    labels(person, classes=[f"class with number {number:02}" for number in range(1, 13)])

    lines = person.screen[1:-1]
    assert len(lines) > 1
    assert all(len(line) <= 100 for line in lines)
    assert "".join(lines) == "".join(
        f"  {number} class with number {number:02}" for number in range(1, 13)
    )


def test_interrupt_keeps_the_answers_given_before_it() -> None:
    person = Person("1")

    def read(prompt: str) -> str:
        if not person.lines:
            raise KeyboardInterrupt
        return person.read(prompt)

    oracle = Terminal(ANIMALS, read=read, write=person.screen.append)
    oracle.ask([Query(SampleId("a"), 0), Query(SampleId("b"), 0)])
    with pytest.raises(KeyboardInterrupt):
        oracle.collect()
    resumed = Terminal(ANIMALS, read=read, write=person.screen.append)
    resumed.load_state_dict(oracle.state_dict())
    person.lines = ["2"]

    assert [answer.label for answer in resumed.collect()] == [0, 1]


def test_lines_go_to_standard_error_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    oracle = Terminal(["cat"], read=lambda prompt: "1")
    oracle.ask([Query(SampleId("a.png"), 0)])
    oracle.collect()

    captured = capsys.readouterr()
    assert captured.err == "Which class is a.png?\n  1 cat\n"
    assert captured.out == ""


def test_unusable_class_names_are_refused() -> None:
    with pytest.raises(SettingError, match="Terminal: classes must have at least one name"):
        Terminal([])


def said(person: Person, *queries: Query) -> list[Answer]:
    oracle = Terminal(ANIMALS, read=person.read, write=person.screen.append)
    oracle.ask(queries)
    return list(oracle.collect())


def test_yes_and_no_are_read_until_they_are_clear() -> None:
    person = Person("Yes", "n", "perhaps", "", "y")
    queries = [Query(SampleId(f"{number}.png"), 0, proposed=2) for number in range(4)]

    kinds = [answer.kind for answer in said(person, *queries)]

    assert kinds == ["yes", "no", "skipped", "yes"]
    assert person.screen[:2] == ["Is 0.png of the class dolphin?", "y or n (Enter skips): "]
    assert "'perhaps' is neither yes nor no. Type y or n." in person.screen


@pytest.mark.parametrize(
    ("line", "among"), [("dog, e", (0, 1)), ("1,4", (0, 3)), ("not sheep", (0, 1, 2))]
)
def test_several_classes_and_their_opposite_are_understood(
    line: str, among: tuple[int, ...]
) -> None:
    (answer,) = said(Person(line), Query(SampleId("a.png"), 0))

    assert (answer.label, answer.among) == (None, among)


def test_a_list_with_an_unclear_name_is_asked_for_again() -> None:
    (answer,) = said(Person("dog, do", "not do", "dog"), Query(SampleId("a.png"), 0))

    assert answer.label == 0
