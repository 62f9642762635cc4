"""What a candidate must prove, and what happens to one that stops proving it."""

import pytest
import torch
from torch import nn

from attakit.errors import ModelError, StreamError
from attakit.nn.weights import save_weights, weights_hash
from attakit.service.learner import gate as gatekeeping
from attakit.service.learner.audit import served_accuracy
from attakit.service.learner.evidence import judge
from attakit.service.storage.rows import Question, Turn, Version


class Constant(nn.Module):
    """Always says one class."""

    def __init__(self, answer):
        super().__init__()
        self.head = nn.Linear(4, 3)
        with torch.no_grad():
            self.head.weight.zero_()
            self.head.bias.copy_(torch.eye(3)[answer])

    def forward(self, inputs):
        return self.head(inputs)


def audit_answers(service, labels, settle=True):
    """Let people say something about samples that were drawn at random."""
    names = service.serve([[0.0] * 4] * len(labels))
    service.storage.questions.put(
        [Question(0, name, 0, "audit", 0, 0.5, ((0, 1.0),), service.now) for name in names]
    )
    said = iter(labels)
    service.answer(lambda question: next(said))
    if settle:
        service.storage.questions.settle()


def add_version(service, answer, turn):
    model = Constant(answer)
    file = f"turn-{turn:09d}.safetensors"
    save_weights(model, service.settings.folder / "versions" / file)
    number = service.storage.versions.next_number()
    version = Version(number, turn, file, weights_hash(model), 0, service.now)
    return service.storage.versions.add(version).number


@pytest.fixture(params=["sqlite", "postgres"])
def database_kind(request):
    return request.param


@pytest.fixture
def service(miniature):
    """A service whose source model always says class 0; the gate asks for ten answers."""
    made = miniature(
        model=Constant(0),
        gate={"audit_needed": 10, "trust": 0.0, "keep_versions": 2},
        learning={"batch_size": 1000, "batch_seconds": 1e9},
    )
    made.start()
    return made


def test_a_better_version_is_promoted_once(service):
    audit_answers(service, [1] * 12)
    number = add_version(service, 1, turn=50)

    service.start()
    service.start()

    assert service.storage.versions.current().version == number
    assert len(service.storage.versions.promotions(10)) == 2


def test_what_people_chose_is_not_undone_by_a_restart(service):
    audit_answers(service, [1] * 12)
    add_version(service, 1, turn=50)
    service.start()
    service.storage.versions.promote(0, "I want the old one.", "admin")

    service.start()

    assert service.storage.versions.current().version == 0


def test_what_people_choose_while_a_candidate_is_judged_stays(service, monkeypatch):
    audit_answers(service, [1] * 12)
    number = add_version(service, 1, turn=50)

    def choose_meanwhile(table, seen):
        service.storage.versions.promote(0, "I want the old one.", "admin")
        return judge(table, seen)

    monkeypatch.setattr(gatekeeping, "judge", choose_meanwhile)
    service.start()

    held = service.storage.versions.get([number])[number].gate
    assert service.storage.versions.current().version == 0
    assert held.reason == "Held back: admin chose version 0 while this one was judged."


def test_a_promoted_version_that_falls_is_rolled_back(service):
    audit_answers(service, [1] * 12)
    number = add_version(service, 1, turn=50)
    service.start()
    assert service.storage.versions.current().version == number

    audit_answers(service, [0] * 12)
    service.start()

    current = service.storage.versions.current()
    assert current.version == 0
    assert current.who == "learner"
    assert current.reason.startswith("Rolled back: on 12 audit answers since its promotion")


def test_a_roll_back_is_not_undone_on_the_strength_of_the_same_answers(service):
    audit_answers(service, [1] * 30)
    add_version(service, 1, turn=50)
    service.start()
    audit_answers(service, [0] * 12)
    service.start()
    back = service.storage.versions.current()

    add_version(service, 1, turn=51)  # right on 30 of 42
    service.start()

    assert back.version == 0
    assert service.storage.versions.current() == back
    reason = service.storage.versions.all()[-1].gate.reason
    assert "too few audit answers since the roll-back to version 0 to judge it, 0 of 10" in reason


def test_what_people_chose_is_undone_only_by_answers_that_came_since(service):
    audit_answers(service, [1] * 30)
    add_version(service, 1, turn=50)
    service.start()
    service.storage.versions.promote(0, "I want the old one.", "Ada")

    held = add_version(service, 1, turn=51)
    service.start()
    assert service.storage.versions.current().version == 0
    told = service.storage.versions.all()[held].gate.reason
    assert "too few audit answers since Ada chose version 0 to judge it, 0 of 10" in told

    service.now += 1
    audit_answers(service, [1] * 12)
    better = add_version(service, 1, turn=52)
    service.start()
    assert service.storage.versions.current().version == better


def test_a_promoted_version_is_rolled_back_while_learning_is_paused(service):
    audit_answers(service, [1] * 12)
    add_version(service, 1, turn=50)
    learner = service.start()
    service.storage.key_values.set("paused", True)

    audit_answers(service, [0] * 12, settle=False)
    learner.run_once()

    assert service.storage.versions.current().version == 0


def test_a_version_that_people_promoted_is_theirs_to_take_back(service):
    number = add_version(service, 1, turn=50)
    service.storage.versions.promote(number, "I like it.", "admin")
    service.now += 1
    audit_answers(service, [0] * 12)

    service.start()

    assert service.storage.versions.current().version == number


def test_no_roll_back_where_it_is_switched_off(service):
    audit_answers(service, [1] * 12)
    number = add_version(service, 1, turn=50)
    service.settings = service.settings.model_copy(
        update={"gate": service.settings.gate.model_copy(update={"roll_back": False})}
    )
    service.start()
    audit_answers(service, [0] * 12)

    service.start()

    assert service.storage.versions.current().version == number


def test_files_of_old_versions_go_but_not_of_those_that_may_answer_again(service):
    numbers = [add_version(service, 1, turn=turn) for turn in (50, 51, 52, 53, 54, 55)]
    service.storage.versions.promote(numbers[1], "Chosen.", "admin")
    service.storage.versions.promote(numbers[0], "Chosen.", "admin")

    service.start()

    kept = {path.name for path in (service.settings.folder / "versions").iterdir()}
    assert kept == {
        "source.safetensors",
        *(f"turn-{turn:09d}.safetensors" for turn in (50, 51, 54, 55)),
    }


def test_versions_that_answered_last_are_kept_besides_the_newest(service):
    numbers = [add_version(service, 1, turn=turn) for turn in (50, 51, 52, 53, 54, 55)]
    service.settings = service.settings.model_copy(
        update={"gate": service.settings.gate.model_copy(update={"keep_versions": 3})}
    )
    for number in numbers[:4]:
        service.storage.versions.promote(number, "Chosen.", "admin")

    service.start()

    kept = {path.name for path in (service.settings.folder / "versions").iterdir()}
    assert kept == {
        "source.safetensors",
        *(f"turn-{turn:09d}.safetensors" for turn in (51, 52, 53, 54, 55)),
    }


def test_drafts_of_a_learner_that_was_killed_are_removed(service):
    folder = service.settings.folder / "versions"
    (folder / ".turn-000000007.safetensors.0123abcd").write_bytes(b"half")

    service.start()

    assert [path.name for path in folder.iterdir()] == ["source.safetensors"]


def test_a_file_that_no_row_ever_named_is_not_deleted(service):
    """It may belong to a database that somebody puts back."""
    stray = service.settings.folder / "versions" / "turn-000000007.safetensors"
    stray.write_bytes(b"whole, but in no database")

    service.start()

    assert stray.is_file()


def test_a_version_whose_file_was_changed_does_not_answer(service):
    audit_answers(service, [1] * 12)
    number = add_version(service, 1, turn=50)
    save_weights(Constant(2), service.settings.folder / "versions" / "turn-000000050.safetensors")

    service.start()

    version = service.storage.versions.get([number])[number]
    assert "cannot be used" in version.gate.reason
    with pytest.raises(ModelError, match="is damaged"):
        service.learner._files.load(version)


def test_a_version_is_not_written_again_when_its_turn_is(service):
    files, turn = service.learner._files, Turn(7, (), 0)
    first = files.write(Constant(1), files.name(Constant(1)), turn, received=0)
    again = files.write(Constant(2), files.name(Constant(2)), turn, received=0)

    assert again == first
    assert weights_hash(files.load(first)) == first.weights == weights_hash(Constant(1))


def test_the_learner_goes_on_if_a_promoted_version_cannot_be_read(service):
    audit_answers(service, [1] * 12)
    lost = add_version(service, 2, turn=50)
    service.storage.versions.promote(lost, "Chosen.", "admin")
    (service.settings.folder / "versions" / "turn-000000050.safetensors").unlink()
    audit_answers(service, [1] * 12)
    better = add_version(service, 1, turn=51)

    service.start()

    assert service.storage.versions.current().version == better
    assert (
        "the serving model on 0.0\N{NO-BREAK SPACE}%"
        in service.storage.versions.all()[-1].gate.reason
    )


def test_an_audit_sample_that_cannot_be_decoded_any_more_is_left_out(service):
    audit_answers(service, [1] * 12)
    add_version(service, 1, turn=50)

    def refuse(content):
        raise StreamError("It has too many pixels.")

    learner = service.start(decode=refuse)

    assert learner.memory.turn == -1
    assert "too few audit answers" in service.storage.versions.all()[-1].gate.reason


def test_a_version_whose_file_is_broken_is_held_back(service):
    audit_answers(service, [1] * 12)
    add_version(service, 1, turn=50)
    (service.settings.folder / "versions" / "turn-000000050.safetensors").write_bytes(b"half")

    service.start()

    gate = service.storage.versions.all()[-1].gate
    assert not gate.passed
    assert "cannot be used" in gate.reason


def test_the_accuracy_of_what_was_served_is_measured_on_the_audit(service):
    assert served_accuracy(service.storage, 200, 0.9) is None

    audit_answers(service, [0] * 6 + [1] * 2)

    found = served_accuracy(service.storage, 200, 0.9)
    assert (found.served.value, found.served.count) == (0.75, 8)
    assert found.served.low < 0.75 < found.served.high
    assert found.source is None  # these questions do not hold what the source model said


def test_another_source_model_is_refused(service):
    service.model = Constant(2)

    with pytest.raises(Exception, match="started with the source model"):
        service.start()
