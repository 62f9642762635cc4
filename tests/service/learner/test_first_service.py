"""A service that the first versions of attakit began continues as if they still ran it.

`first_service.json` holds such a service, stopped after turn 4 with its checkpoint of turn 2, and
what those versions made of the turns after that. They wrote their checkpoints in two ways: with
the tables of revision 0001, and with those of 0002.
"""

import base64
import json
from pathlib import Path

import pytest

from attakit.service.saved_settings import SETTINGS_FILE, with_saved_method
from attakit.service.storage import open_storage
from attakit.settings.service import ServiceSettings
from first_database import fill_first_database, read_all
from miniature_service import Miniature

FIRST = json.loads(Path(__file__).parents[2].joinpath("first_service.json").read_text())
CHECKPOINT = "checkpoints/turn-000000002.safetensors"


@pytest.fixture(params=["0001", "0002"])
def folder(tmp_path, database, request):
    """The folder of the first service; its database may be elsewhere."""
    fill_first_database(database, FIRST["rows"])
    if request.param == "0002":
        open_storage(tmp_path, database).close()
    files = {**FIRST["files"], CHECKPOINT: FIRST["checkpoints"][request.param]}
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(base64.b64decode(content))
    (tmp_path / SETTINGS_FILE).write_text(json.dumps(FIRST["settings"]))
    return tmp_path


@pytest.fixture
def service(folder, database):
    """The first service, started with the settings it had."""
    tables = {**FIRST["settings"], "folder": folder, "database": database}
    begun = with_saved_method(ServiceSettings.model_validate(tables))
    made = Miniature(
        folder, url=database, **begun.model_dump(exclude={"folder", "database", "model"})
    )
    made.now, made.served = FIRST["now"], FIRST["served"]
    yield made
    made.storage.close()


def people(question):
    return None if question.question % 5 == 0 else question.question % 3


def play(service, round_number):
    """What happened in the world when the first versions continued."""
    if round_number % 4 != 3:
        service.serve_batch(round_number, 6, shift=5)
    service.answer(people, limit=3)
    while service.learner.run_once():
        pass


def test_it_asks_learns_and_promotes_as_it_would_have(service):
    service.start()
    for number in range(5, 9):
        play(service, number)

    storage = service.storage
    questions = storage.questions.recent(1000)[::-1]
    assert [(one.sample, one.turn, one.purpose, one.label) for one in questions] == [
        tuple(one[:4]) for one in FIRST["questions"]
    ]
    for question, (*_, guesses) in zip(questions, FIRST["questions"], strict=True):
        assert dict(question.guesses) == pytest.approx(dict(guesses), abs=1e-4)
    versions = [[one.number, one.turn, one.labels] for one in storage.versions.all()]
    # The first versions of attakit made one more, in a turn without a new label.
    assert [*versions, [8, 8, 12]] == FIRST["versions"]
    assert storage.versions.current().version == versions[-1][0]


def test_it_loses_nothing(service, database):
    kept = ("samples", "questions", "answers", "versions", "gates", "promotions")
    before = read_all(database)

    learner = service.start()

    after = read_all(database)
    assert all(after[name] == before[name] for name in kept)
    left = json.loads(FIRST["rows"]["turns"][-1]["numbers"])["left"]
    assert learner.memory.ledger.budget.remaining == left
