"""Terminal: a person at the keyboard answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from attakit.label.callback import Callback
from attakit.label.classes import check_classes
from attakit.label.said import Class
from attakit.queries import SampleId

SKIP = ("", "s")
LIST = "?"
NOT = "not "
LINE_LENGTH = 100

Classes = int | frozenset[int] | None  # one class, one of several, or skipped
Reply = TypeVar("Reply")


def _write_line(text: str) -> None:
    # Not standard output, which may carry results for another program.
    sys.stderr.write(text + "\n")


class Terminal(Callback):
    """Shows where each sample is and lists the classes, then reads a class from the keyboard.

    An answer is a class number as listed, a class name, or its unambiguous beginning. Enter or `s`
    skips, `?` lists the classes again, end of input (Ctrl-D) skips all the rest. Several classes
    separated by commas mean "one of these", and with "not" in front "none of these". A yes/no
    question is answered with `y` or `n`. The exact name of a class always means that class. Classes
    with numbers as names are listed without numbers, so that answers are unambiguous. `collect`
    waits for the person.

    Parameters
    ----------
    classes
        Names of the classes, in the order of the model's outputs.
    where
        Function that says where a sample can be seen, for example its path.
    read
        Function that shows a prompt and returns a line, like `input`. EOFError means end of input.
    write
        Function that shows a line; standard error by default.
    annotator
        Name that signs the answers.

    Examples
    --------
    >>> from attakit.queries import Query
    >>> oracle = Terminal(["cat", "dog"], read=lambda prompt: "d", write=lambda line: None)
    >>> oracle.ask([Query(SampleId("a.png"), step=0)])
    >>> [answer.label for answer in oracle.collect()]
    [1]
    """

    def __init__(
        self,
        classes: Sequence[str],
        *,
        where: Callable[[SampleId], str] = str,
        read: Callable[[str], str] = input,
        write: Callable[[str], None] = _write_line,
        annotator: str = "terminal",
    ) -> None:
        super().__init__(
            self._ask_person, confirm=self._ask_yes_no, classes=classes, annotator=annotator
        )
        self.where = where
        self.read = read
        self.write = write
        self._names = check_classes("Terminal", classes)
        self._has_numbers = not any(name.strip().isdecimal() for name in self._names)
        self._is_over = False

    def _ask_person(self, sample: SampleId) -> Classes:
        return self._until_the_end(lambda: self._read_class(sample))

    def _ask_yes_no(self, sample: SampleId, proposed: Class) -> bool | None:
        return self._until_the_end(lambda: self._read_yes_no(sample, proposed))

    def _until_the_end(self, question: Callable[[], Reply]) -> Reply | None:
        """Ask, unless the input has ended."""
        try:
            return None if self._is_over else question()
        except EOFError:
            self._is_over = True
            self.write("No more input: the remaining questions are skipped.")
            return None

    def _read_yes_no(self, sample: SampleId, proposed: Class) -> bool | None:
        self.write(f"Is {self.where(sample)} of the class {proposed}?")
        while True:
            text = self.read("y or n (Enter skips): ").strip().casefold()
            if text in SKIP:
                return None
            for word, meaning in (("yes", True), ("no", False)):
                if word.startswith(text):
                    return meaning
            self.write(f"{text!r} is neither yes nor no. Type y or n.")

    def _read_class(self, sample: SampleId) -> Classes:
        self.write(f"Which class is {self.where(sample)}?")
        self._list_classes()
        while True:
            text = self.read(f"Class (Enter skips, {LIST} lists): ").strip()
            found = self._matches(text)
            if len(found) == 1:
                return found[0]
            if text in SKIP:
                return None
            if several := self._several(text):
                return several
            if text == LIST:
                self._list_classes()
            else:
                self.write(self._complaint(text, found))

    def _several(self, text: str) -> frozenset[int]:
        """Return the classes that remain possible: those listed, or all others after "not"."""
        is_negative = text.casefold().startswith(NOT)
        parts = text[len(NOT) * is_negative :].split(",")
        found = [self._matches(part.strip()) for part in parts]
        if any(len(each) != 1 for each in found) or not (is_negative or len(parts) > 1):
            return frozenset()
        named = {each[0] for each in found}
        return frozenset(range(len(self._names))) - named if is_negative else frozenset(named)

    def _matches(self, text: str) -> list[int]:
        """Return the classes that the text may mean: by name, then number, then beginning."""
        exact = self._having(lambda name: name == text)
        if exact or text in (*SKIP, LIST):
            return exact
        if self._has_numbers and text.isdecimal():
            number = int(text)
            return [number - 1] if 1 <= number <= len(self._names) else []
        folded = text.casefold()
        same = self._having(lambda name: name.casefold() == folded)
        return same or self._having(lambda name: name.casefold().startswith(folded))

    def _having(self, condition: Callable[[str], bool]) -> list[int]:
        return [index for index, name in enumerate(self._names) if condition(name)]

    def _complaint(self, text: str, found: list[int]) -> str:
        if found:
            names = ", ".join(self._names[index] for index in found)
            return f"{text!r} may be {names}. Type more of the name."
        numbers = f"a number from 1 to {len(self._names)}, " if self._has_numbers else ""
        return f"{text!r} is not a class. Type {numbers}a name or its beginning."

    def _list_classes(self) -> None:
        line = ""
        for number, name in enumerate(self._names, start=1):
            entry = f"  {number} {name}" if self._has_numbers else f"  {name}"
            if line and len(line + entry) > LINE_LENGTH:
                self.write(line)
                line = ""
            line += entry
        self.write(line)
