"""Turns of the learner, from samples to questions, labels and candidates."""

import pytest

from attakit.nn.classifier import Classifier
from miniature_service import decode


@pytest.fixture(params=["sqlite", "postgres"])
def database_kind(request):
    return request.param


def test_a_full_batch_makes_a_turn_that_asks(miniature):
    service = miniature()
    learner = service.start()
    service.serve_batch(0, size=9)
    assert not learner.run_once()

    service.serve_batch(1, size=1)

    assert learner.run_once()
    (turn, numbers), *_ = service.storage.turns.recent(1)
    assert turn.number == 0
    assert len(turn.samples) == 10
    assert numbers["samples"] == 10
    counts = service.storage.questions.counts()
    assert counts.open == learner.memory.asked_learn + learner.memory.asked_audit > 0


def test_a_small_batch_is_taken_after_a_while(miniature):
    service = miniature()
    learner = service.start()
    service.serve_batch(0, size=2)
    service.now += service.settings.learning.batch_seconds - 1
    assert not learner.run_once()

    service.now += 1

    assert learner.run_once()


def test_a_question_tells_what_the_asking_model_thinks(miniature):
    service = miniature()
    service.start()
    service.serve_batch(0)
    service.learner.run_once()

    question = service.storage.questions.recent(1)[0]

    assert question.purpose == "learn"
    assert question.version == 0
    assert question.score > 0
    assert len(question.guesses) == 3
    chances = [chance for _, chance in question.guesses]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1)


@pytest.mark.parametrize(("share", "passes"), [(0.0, 0), (1.0, 1)])
def test_samples_are_looked_at_beforehand_only_where_some_are_audited(
    miniature, monkeypatch, share, passes
):
    service = miniature(labels={"audit_share": share})
    learner = service.start()
    service.serve_batch(0)
    real, seen = learner.memory.method.predict, []
    monkeypatch.setattr(
        learner.memory.method, "predict", lambda inputs: seen.append(len(inputs)) or real(inputs)
    )

    learner.run_once()

    assert seen == [10] * passes
    (question, *_) = service.storage.questions.recent(1)
    assert len(question.guesses) == 3
    assert service.storage.turns.recent(1)[0][1]["entropy"] > 0


def test_answers_that_are_settled_are_learned_from_without_new_samples(miniature):
    service = miniature()
    learner = service.start()
    service.serve_batch(0)
    learner.run_once()
    service.answer(lambda question: 1)

    assert learner.run_once()

    (turn, numbers), *_ = service.storage.turns.recent(1)
    assert turn.samples == ()
    assert len(turn.settled) == learner.memory.ledger.received > 0
    assert numbers["updates"] > 0
    assert not learner.run_once()


def test_a_trained_turn_makes_a_candidate_that_is_held_back_without_an_audit(miniature):
    service = miniature()
    learner = service.start()
    service.serve_batch(0)
    learner.run_once()
    service.answer(lambda question: 1)
    learner.run_once()

    versions = service.storage.versions.all()

    assert [version.number for version in versions] == [0, 1]
    assert versions[1].labels == learner.memory.ledger.received
    assert not versions[1].gate.passed
    assert "too few audit answers" in versions[1].gate.reason
    assert service.storage.versions.current().version == 0
    assert (service.settings.folder / "versions" / versions[1].file).is_file()


def test_there_is_no_new_version_without_a_new_label(miniature):
    service = miniature()
    learner = service.start()
    for number in range(4):
        service.serve_batch(number)
        learner.run_once()
    assert [one.number for one in service.storage.versions.all()] == [0]

    service.answer(lambda question: 1, limit=2)
    learner.run_once()
    for number in range(4, 8):
        service.serve_batch(number, shift=number)
        learner.run_once()

    assert [one.labels for one in service.storage.versions.all()] == [0, 2]


def test_questions_hold_what_the_source_model_said(miniature):
    service = miniature()
    learner = service.start()
    names = service.serve_batch(0)
    learner.run_once()

    for question in service.storage.questions.recent(10):
        inputs = decode(service.storage.samples.contents(names)[question.sample])[None]
        assert question.source_guess == int(Classifier(service.model)(inputs).logits.argmax())
        assert question.source_entropy > 0


def test_a_new_folder_begins_with_the_source_model(miniature):
    service = miniature()

    service.start()

    (source,) = service.storage.versions.all()
    assert source.number == 0
    assert service.storage.versions.current().version == 0


def test_a_paused_learner_takes_no_turn_but_forgets(miniature):
    service = miniature()
    learner = service.start()
    first = service.serve_batch(0)
    learner.run_once()
    service.storage.key_values.set("paused", True)
    service.serve_batch(1)
    assert not learner.run_once()

    service.storage.samples.forget(first[0], "admin")

    assert learner.run_once()
    (turn, _), *_ = service.storage.turns.recent(1)
    assert turn.forgotten == (first[0],)
    assert turn.samples == ()
    assert not learner.run_once()


def test_a_forgotten_sample_leaves_memory_and_checkpoint(miniature):
    service = miniature(labels={"audit_share": 0.0})
    learner = service.start()
    service.serve_batch(0)
    learner.run_once()
    service.answer(lambda question: 1)
    learner.run_once()
    kept = learner.memory.method.high_entropy_anchors.rows.samples[0]

    service.storage.samples.forget(kept, "admin")
    learner.run_once()

    assert kept not in learner.memory.method.high_entropy_anchors.rows.samples
    labels = {row[0]: row[-1] for row in learner.memory.ledger.state_dict()["settled"]}
    assert labels[kept] == -1
    (checkpoint,) = (service.settings.folder / "checkpoints").iterdir()
    assert checkpoint.name == f"turn-{learner.memory.turn:09d}.safetensors"
