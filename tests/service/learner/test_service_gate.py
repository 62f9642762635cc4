"""What a candidate must prove, and what happens to one that stops proving it."""

import pytest
import torch
from torch import nn

from attakit.errors import StreamError
from attakit.nn.weights import save_weights, weights_hash
from attakit.service.learner import gate as gatekeeping
from attakit.service.learner.audit import Trust, estimate, served_accuracy, trust
from attakit.service.learner.evidence import Evidence, SourceLike, judge, paired_difference
from attakit.service.storage.rows import Question, Turn, Version
from attakit.settings.service import GateTable

TABLE = GateTable(audit_needed=10)


def evidence(candidate, serving=None, source=None, labels=None, **more):
    count = len(candidate)
    labels = [0] * count if labels is None else labels
    source = [0] * count if source is None else source
    serving = source if serving is None else serving
    return Evidence(labels, candidate, serving, source, [0.1] * count, **more)


def test_the_interval_of_wilson_is_as_in_the_books():
    found = estimate(right=90, count=100, confidence=0.95)

    assert found.value == 0.9
    assert found.low == pytest.approx(0.8256, abs=1e-4)
    assert found.high == pytest.approx(0.9448, abs=1e-4)


def test_the_paired_difference_counts_only_where_two_models_differ():
    labels = [0, 0, 0, 0, None]
    found = paired_difference(labels, [0, 0, 1, 1, 0], [0, 1, 0, 1, 1], confidence=0.9)

    assert found.value == 0
    assert found.low == pytest.approx(-found.high)


def test_the_paired_bound_holds_as_often_as_it_promises():
    random = torch.Generator().manual_seed(0)
    truth, missed, repeats = -0.1, 0, 1000
    for _ in range(repeats):
        draw = torch.rand(60, generator=random)
        new = (draw > 0.25).long().tolist()  # wrong in 25 % of cases
        old = ((draw < 0.10) | (draw > 0.25)).long().tolist()  # wrong in 15 %
        found = paired_difference([1] * 60, new, old, confidence=0.9)
        missed += found.low > truth

    assert 0.05 < missed / repeats < 0.15


@pytest.mark.parametrize(("classes", "most"), [(2, 0.05), (10, 0.02)])
def test_people_who_answer_at_random_are_hardly_ever_trusted(classes, most):
    random = torch.Generator().manual_seed(0)
    trusted, repeats = 0, 1000
    for _ in range(repeats):
        said = torch.randint(classes, (20,), generator=random).tolist()
        found = trust(said, [1] * 20, [0.01] * 20, classes, confidence=0.9)
        trusted += found.beyond_chance >= TABLE.trust

    assert found.count == 5
    assert trusted / repeats <= most


def test_people_who_often_disagree_are_trusted_if_they_say_enough():
    few = trust([1, 0] * 10, [0] * 20, [0.1] * 20, classes=10, confidence=0.9)
    many = trust([1, 0] * 100, [0] * 200, [0.1] * 200, classes=10, confidence=0.9)

    assert (few.share, few.count) == (0.4, 5)
    assert (many.share, many.count) == (0.5, 50)
    assert few.beyond_chance < TABLE.trust < many.beyond_chance


def test_trust_looks_only_where_the_source_model_is_sure():
    found = trust([1, 1, 0], [1, 0, 1], [0.0, 1.0, 2.0], classes=3, confidence=0.9)

    assert (found.share, found.count) == (1.0, 1)
    assert trust([], [], [], classes=3, confidence=0.9) == Trust(0.0, 0.0, 0)


def test_a_candidate_that_is_clearly_better_passes():
    labels = [0] * 20
    gate = judge(TABLE, evidence([0] * 20, source=[0] * 12 + [1] * 8, labels=labels))

    assert gate.passed
    assert "right on 100.0% of the audit, the serving model on 60.0%" in gate.reason
    assert "no source-like samples" in gate.reason
    assert gate.numbers["serving_difference"] == pytest.approx(0.4)


def test_a_candidate_without_enough_answers_is_held_back():
    gate = judge(TABLE, evidence([0] * 9))

    assert not gate.passed
    assert gate.reason == ("Held back: there are too few audit answers to judge it, 9 of 10.")


def test_a_candidate_is_held_back_when_the_answers_look_random():
    labels = [1, 2, 3] * 10
    gate = judge(TABLE, evidence(labels, source=[0] * 30, labels=labels))

    assert not gate.passed
    assert "the answers look random" in gate.reason
    assert gate.numbers["trust"] == 0


def test_a_candidate_is_held_back_when_people_agree_as_often_as_by_chance():
    labels = [0, 1] * 20
    gate = judge(TABLE, evidence(labels, source=[0] * 40, labels=labels, classes=2))

    assert gate.numbers["trust"] == 0.5
    assert gate.numbers["trust_beyond_chance"] == 0
    assert "the answers look random" in gate.reason


def test_a_candidate_that_is_worse_is_held_back():
    gate = judge(TABLE, evidence([0] * 30 + [1] * 10))

    assert not gate.passed
    assert "right on 75.0% of the audit, the serving model on 100.0%" in gate.reason


def test_a_candidate_that_may_be_worse_is_held_back():
    labels = [0] * 20
    candidate = [0] * 18 + [1] * 2
    serving = [1] * 2 + [0] * 18
    gate = judge(TABLE, evidence(candidate, serving=serving, labels=labels))

    assert gate.numbers["serving_difference"] == 0
    assert not gate.passed


def test_a_candidate_that_forgets_the_source_is_held_back():
    better = {"source": [0] * 12 + [1] * 8}
    held = judge(TABLE, evidence([0] * 20, source_like=SourceLike(0.80, 0.90, 0.90), **better))
    passed = judge(TABLE, evidence([0] * 20, source_like=SourceLike(0.86, 0.90, 0.90), **better))

    assert not held.passed
    assert "agrees with 80.0% of the source-like samples" in held.reason
    assert passed.passed


def test_candidates_cannot_forget_the_source_little_by_little():
    better = {"source": [0] * 12 + [1] * 8}
    like_the_serving_model = SourceLike(candidate=0.90, serving=0.90, source=1.0)

    gate = judge(TABLE, evidence([0] * 20, source_like=like_the_serving_model, **better))

    assert not gate.passed
    assert "the source model with 100.0%" in gate.reason


def test_every_candidate_has_its_accuracy_with_an_interval():
    guesses = [0] * 4 + [1] * 1
    gate = judge(TABLE, evidence(guesses, serving=guesses, source=guesses, labels=[0] * 5))

    assert "too few audit answers" in gate.reason
    assert gate.numbers["candidate_accuracy"] == 0.8
    assert 0.3 < gate.numbers["candidate_accuracy_low"] < 0.8
    assert 0.8 < gate.numbers["candidate_accuracy_high"] < 1


def test_a_candidate_that_beats_a_bad_serving_model_but_not_the_source_is_held_back():
    serving = [1] * 40
    candidate = [0] * 20 + [1] * 20
    gate = judge(TABLE, evidence(candidate, serving=serving, source=[0] * 40, labels=[0] * 40))

    assert not gate.passed
    assert "the source model on 100.0%" in gate.reason


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
    assert held.reason == "Held back: admin chose version 0 while it was judged."


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
    (folder / "turn-000000007.safetensors").write_bytes(b"whole, but in no database")

    service.start()

    assert [path.name for path in folder.iterdir()] == ["source.safetensors"]


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
    assert "the serving model on 0.0%" in service.storage.versions.all()[-1].gate.reason


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
    assert (found.value, found.count) == (0.75, 8)
    assert found.low < 0.75 < found.high


def test_another_source_model_is_refused(service):
    service.model = Constant(2)

    with pytest.raises(Exception, match="begun with the source model"):
        service.start()
