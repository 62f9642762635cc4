"""What tests of the exchange share: a service that has put a few questions."""

import io

import pytest
from PIL import Image

from attakit.service.exchange import read_answers, write_questions
from attakit.service.storage import LabelRules, Question, ServedSample, open_storage

CLASSES = ("cat", "größer; Hund", "=SUM(1)", "三毛猫")


def picture(colour):
    file = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def service(tmp_path, clock):
    """Storage with three open questions, of which the second has no image any more."""
    rules = LabelRules(classes=len(CLASSES))
    with open_storage(tmp_path / "live", labels=rules, clock=clock) as storage:
        contents = [picture("red"), None, picture("blue")]
        storage.samples.add(
            [
                ServedSample(f"=s{number}", content, 0, number, 0.6, 0.9, clock.now + number)
                for number, content in enumerate(contents)
            ]
        )
        storage.questions.put(
            [
                Question(0, f"=s{number}", 0, "learn", 7, 0.9, ((number, 0.6), (3, 0.4)), clock.now)
                for number in range(3)
            ]
        )
        yield storage


@pytest.fixture
def exported(service):
    """Writes the questions of the service, as text."""

    def write(form, **options):
        text = io.StringIO(newline="")
        write_questions(service, text, form, classes=CLASSES, **options)
        return text.getvalue()

    return write


@pytest.fixture
def imported(service):
    """Reads answers from text; what is said is counted by name."""

    def read(form, text, annotator="ada"):
        return read_answers(
            service, io.StringIO(text, newline=""), form, annotator, classes=CLASSES
        )

    return read


@pytest.fixture
def said(service):
    """What people said to a question: who, kind, label."""

    def look(question):
        return [(one.annotator, one.kind, one.label) for one in service.questions.answers(question)]

    return look
