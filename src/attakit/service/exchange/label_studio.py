"""Label Studio: export tasks with the model's guesses, import annotations.

The files have the format of its JSON import and export. A task's data includes the number of its
question, so an export of the whole project can be imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from attakit.errors import LabelError
from attakit.service.exchange.lines import (
    NO,
    NONE,
    YES,
    ExportedQuestion,
    Line,
    LineProblem,
    shortened,
)
from attakit.service.storage.rows import GivenAnswer, Question

# Names in the labelling interface.
IMAGE, CHOICES, ASK, TEXT = "image", "class", "ask", "text"
_WHICH = "Which class is it?"


def tasks_of(asked: Iterable[ExportedQuestion], classes: Sequence[str]) -> Iterator[str]:
    """Yield the text of a file with a list of tasks, in pieces."""
    yield "["
    before = "\n"
    for one in asked:
        yield before + json.dumps(_to_task(one, classes), ensure_ascii=False)
        before = ",\n"
    yield "\n]\n"


def label_config(classes: Sequence[str], *, yes_no: bool = False, pictures: bool = True) -> str:
    """Return the labelling interface for such tasks, to paste into the settings of a project.

    With `yes_no` it shows what each task asks, and offers "yes" and "no" as well. Without
    `pictures` it shows numbers and texts instead.

    >>> print(label_config(["cat", "dog"]))
    <View>
      <Image name="image" value="$image" />
      <Choices name="class" toName="image" choice="single" required="true">
        <Choice value="cat" />
        <Choice value="dog" />
        <Choice value="none of these" />
      </Choices>
    </View>
    """
    view = Element("View")
    if yes_no:
        SubElement(view, "Header", value=f"${ASK}")
    shown, value = ("Image", IMAGE) if pictures else ("Text", TEXT)
    SubElement(view, shown, name=IMAGE, value=f"${value}")
    choices = SubElement(
        view, "Choices", name=CHOICES, toName=IMAGE, choice="single", required="true"
    )
    for name in dict.fromkeys([*((YES, NO) if yes_no else ()), *classes, NONE]):
        SubElement(choices, "Choice", value=name)
    indent(view)
    return tostring(view, encoding="unicode")


def read_annotations(stream: TextIO) -> Iterator[Line | LineProblem]:
    """Read a list of tasks with annotations. Line numbers count tasks."""
    content = stream.read().removeprefix("\ufeff")
    try:
        tasks = json.loads(content) if content.strip() else []
    except (ValueError, RecursionError) as error:
        raise LabelError(
            f"Import: the file is not JSON ({error}). Export the project from Label Studio in the "
            f"format JSON."
        ) from error
    if not isinstance(tasks, list):
        raise LabelError(
            f"Import: the file must hold a list of tasks, got {shortened(tasks)}. Export the "
            f"project from Label Studio in the format JSON."
        )
    for number, task in enumerate(tasks, start=1):
        yield from _to_lines(number, task)


def _to_task(asked: ExportedQuestion, classes: Sequence[str]) -> dict[str, Any]:
    question = asked.question
    task: dict[str, Any] = {
        "data": {
            "question": question.question,
            "sample": question.sample,
            IMAGE: asked.image or "",  # it rejects a file in which a task lacks this
            ASK: _ask(question, classes),
            TEXT: _text(asked),
        },
        "predictions": [
            {
                "model_version": f"version {question.version}",
                "score": probability,
                "result": _choose(classes[label]),
            }
            for label, probability in question.guesses[:1]
        ],
    }
    if asked.answers:
        task["annotations"] = [_to_annotation(given, classes) for given in asked.answers]
    return task


def _text(asked: ExportedQuestion) -> str:
    """Return the readable content of a sample, one line per item."""
    lines = [asked.text, *(f"{name}: {value}" for name, value in asked.notes.items())]
    if asked.caller_id:
        lines.append(f"id: {asked.caller_id}")
    return "\n".join(line for line in (*lines, asked.numbers) if line)


def _ask(question: Question, classes: Sequence[str]) -> str:
    return _WHICH if question.proposed is None else f"Is it “{classes[question.proposed]}”?"


def _to_annotation(given: GivenAnswer, classes: Sequence[str]) -> dict[str, Any]:
    if given.kind == "skip":
        return {"was_cancelled": True, "result": []}
    if given.label is None:
        return {"result": _choose(NO if given.kind == "no" else NONE)}
    return {"result": _choose(classes[given.label])}


def _choose(name: str) -> list[dict[str, Any]]:
    chosen = {"choices": [name]}
    return [{"from_name": CHOICES, "to_name": IMAGE, "type": "choices", "value": chosen}]


def _to_lines(number: int, task: Any) -> Iterator[Line | LineProblem]:
    data = task.get("data") if isinstance(task, dict) else None
    if not isinstance(data, dict) or "question" not in data:
        message = "the task data has no question: not from attakit, or not in the format JSON"
        yield LineProblem(number, message)
        return
    annotations = task.get("annotations", [])
    if not isinstance(annotations, list):
        yield LineProblem(number, "the annotations of the task are not a list")
        return
    if not annotations:
        yield Line(number, data["question"])
    for annotation in annotations:
        yield _to_line(number, data["question"], annotation)


def _to_line(number: int, question: Any, annotation: Any) -> Line | LineProblem:
    if not isinstance(annotation, dict):
        return LineProblem(number, f"an annotation must be an object, got {shortened(annotation)}")
    who = _annotator(annotation.get("completed_by"))
    if annotation.get("was_cancelled"):
        return Line(number, question, kind="skip", annotator=who)
    chosen = _choices(annotation.get("result"))
    if chosen is None or len(chosen) > 1:
        return LineProblem(number, "an annotation must have one choice")
    return Line(number, question, answer=chosen[0] if chosen else None, annotator=who)


def _choices(result: Any) -> list[Any] | None:
    """Return what was chosen, or None if the result has another form."""
    if not isinstance(result, list):
        return None
    values = [
        one.get("value") for one in result if isinstance(one, dict) and one.get("type") == "choices"
    ]
    chosen: list[Any] = []
    for value in values:
        found = value.get("choices") if isinstance(value, dict) else None
        if not isinstance(found, list):
            return None
        chosen += found
    return chosen


def _annotator(completed_by: Any) -> str | None:
    """Return a name that identifies a person of the project; a number if there is no name."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return None if completed_by is None else f"label-studio/{completed_by}"
