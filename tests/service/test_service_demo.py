"""The simulated traffic of the live demo."""

from types import SimpleNamespace

import pytest
import torch

from attakit.errors import ServiceError
from attakit.service import demo
from attakit.service.demo import BATCH, SimulatedClients, SimulatedPeople
from attakit.service.demo_guide import write_guide
from attakit.service.web.examples import Examples
from attakit.settings.service import LabellingTable


class Client:
    """As much of a client as the demo uses."""

    def __init__(self, leases=()):
        self.leases = list(leases)
        self.sent = 0
        self.answers = []
        self.released = []

    def predict(self, images):
        self.sent += len(images)
        assert all(image.startswith(b"\x89PNG") for image in images)
        return [SimpleNamespace(sample=f"s{self.sent - n}") for n in range(len(images))]

    def lease(self):
        return self.leases.pop(0) if self.leases else None

    def release(self, question):
        self.released.append(question)

    def answer(self, question, *, label=None, kind="label"):
        self.answers.append((question, label, kind))


class Digits:
    """Seven images of one domain; the class of each is its position."""

    labels = torch.arange(7)

    def __len__(self):
        return 7

    def load(self, chosen):
        return torch.zeros(len(chosen), 1, 4, 4)


@pytest.fixture
def task():
    return SimpleNamespace(targets=SimpleNamespace(parts={"photo": Digits()}))


def lease(question, sample, *, open_questions=100, proposed=None):
    return SimpleNamespace(question=question, sample=sample, open=open_questions, proposed=proposed)


def test_visitors_send_every_image_again_and_again_and_remember_its_class(task, monkeypatch):
    monkeypatch.setattr(demo, "REMEMBERED", 9)
    client = Client()
    visitors = SimulatedClients(client, task)

    for _ in range(2):
        visitors.run_once()
    once = sorted(visitors.truth.values())
    for _ in range(2):
        visitors.run_once()

    assert (client.sent, BATCH) == (14, 5)
    assert once == list(range(7))
    assert len(visitors.truth) == 9
    assert "s1" not in visitors.truth


def test_simulated_people_answer_what_they_know_and_skip_the_rest():
    client = Client([lease(1, "a"), lease(2, "b")])
    people = SimulatedPeople(client, {"a": 2}, 3, wrong=0.0)

    for _ in range(3):
        people.run_once()

    assert client.answers == [(1, 2, "label"), (2, None, "skip")]


def test_simulated_people_are_wrong_as_often_as_they_should():
    client = Client([lease(number, "a") for number in range(400)])
    people = SimulatedPeople(client, {"a": 2}, 3, wrong=0.25)

    for _ in range(400):
        people.run_once()

    wrong = [label for _, label, _ in client.answers if label != 2]
    assert 70 < len(wrong) < 130
    assert set(wrong) == {0, 1}


def test_a_service_that_does_not_answer_is_no_reason_for_an_error_line(task, caplog):
    visitors = SimulatedClients(Client(), task)

    visitors.on_failure(ServiceError("It is stopping."))
    quiet = caplog.text
    visitors.on_failure(ValueError("a mistake in the demo"))

    assert quiet == ""
    assert "the visitors failed" in caplog.text


def test_simulated_people_leave_some_questions_to_visitors():
    client = Client([lease(1, "a", open_questions=7), lease(2, "a", open_questions=6)])
    people = SimulatedPeople(client, {"a": 2}, 3, wrong=0.0, left=6)

    for _ in range(2):
        people.run_once()

    assert (client.answers, client.released) == ([(1, 2, "label")], [2])


def test_simulated_people_answer_yes_and_no():
    client = Client([lease(1, "a", proposed=2), lease(2, "a", proposed=1)])
    people = SimulatedPeople(client, {"a": 2}, 3, wrong=0.0)

    for _ in range(2):
        people.run_once()

    assert client.answers == [(1, None, "yes"), (2, None, "no")]


def test_the_demo_explains_how_to_label_with_examples_of_each_digit(tmp_path):
    source = SimpleNamespace(
        labels=(0, 1, 1, 0, 1), load=lambda chosen: torch.zeros(len(chosen), 1, 4, 4)
    )
    task = SimpleNamespace(classes=("0", "1"), source_train=source)
    for _ in range(2):  # it is written again at each start
        table = LabellingTable.model_validate(write_guide(tmp_path / "live" / "examples", task))

    examples = Examples(table, task.classes)
    assert examples.counts == [2, 3]
    assert examples.picture(1, 2, pixels=10_000).startswith(b"\x89PNG")
    assert "Say which digit" in table.instructions
    assert (tmp_path / "live").stat().st_mode & 0o077 == 0
