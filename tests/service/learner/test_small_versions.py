"""Versions of a method that leaves the network alone: kilobytes, tied to the source model."""

import time
from dataclasses import replace

import pytest
import torch

from attakit.errors import ModelError
from attakit.nn import Classifier, FrozenHead, SmallCNN, save_weights
from attakit.nn.seeding import seeded
from attakit.nn.weights import weights_hash
from attakit.service.blobs import FolderBlobs
from attakit.service.learner import process
from attakit.service.learner.candidates import VersionFiles
from attakit.service.learner.gate import Gatekeeper
from attakit.service.predictor import Predictor
from attakit.service.saved_settings import open_service
from attakit.testing import tiny_classifier
from miniature_service import wait_until

HEAD = {"name": "anchor_head", "source_share": 0.6}
LABELS = {"per_1000": 300}
OPEN_GATE = {"audit_needed": 2, "trust": 0.0, "audit_margin": 1.0}


def learned(service, rounds=3, **batch):
    """Let a service answer and learn for some rounds."""
    learner = service.start()
    for number in range(rounds):
        service.serve_batch(number, **batch)
        while learner.run_once():
            pass
        service.answer(lambda question: question.question % 3)
        while learner.run_once():
            pass
    return learner


def newest(service):
    return service.storage.versions.recent(1)[0]


def test_a_version_holds_only_what_differs_from_the_source_model(miniature):
    with seeded(0, "model"):
        model = SmallCNN(classes=3).eval()
    service = miniature(
        model=model,
        method=HEAD,
        gate=OPEN_GATE,
        labels=LABELS,
        learning={"batch_size": 20},
        classes=tuple("abc"),
    )
    learner = service.start()
    random = torch.Generator().manual_seed(0)
    for _ in range(2):
        service.serve(torch.rand(20, 1, 28, 28, generator=random).numpy())
        while learner.run_once():
            pass
        service.answer(lambda question: question.question % 3)
        while learner.run_once():
            pass
    files = service.settings.folder / "versions"
    size = (files / newest(service).file).stat().st_size
    assert size < 20_000
    assert (files / "source.safetensors").stat().st_size > 10 * size


def test_a_version_answers_exactly_as_the_learners_model_did(miniature):
    service = miniature(method=HEAD, gate=OPEN_GATE, labels=LABELS | {"audit_share": 0.5})
    learner = learned(service)
    loaded = learner._files.load(newest(service))
    inputs = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = learner.memory.method.adapted_model(inputs)
        assert torch.equal(loaded(inputs).logits, expected)
    with Predictor(loaded, 1) as predictor:
        assert torch.equal(predictor.predict(inputs).logits, expected)
    assert service.storage.versions.current().version > 0
    assert torch.equal(service.model(inputs), tiny_classifier().eval()(inputs))


def test_a_version_is_refused_with_another_source_model_and_if_it_is_damaged(miniature):
    service = miniature(method=HEAD, gate=OPEN_GATE, labels=LABELS)
    learned(service)
    folder, version = service.settings.folder / "versions", newest(service)
    other = Classifier(tiny_classifier(seed=1).eval())
    with pytest.raises(ModelError, match="do not reproduce version"):
        VersionFiles(FolderBlobs(folder), service.storage.versions, other).load(version)
    (folder / version.file).write_bytes(b"damaged")
    with pytest.raises(ModelError, match="not a readable safetensors file"):
        service.learner._files.load(version)


def test_versions_of_plain_weights_in_the_same_folder_are_still_read(miniature):
    service = miniature(method=HEAD, gate=OPEN_GATE, labels=LABELS)
    learned(service)
    plain = tiny_classifier(seed=1)
    version = replace(newest(service), weights=weights_hash(plain))
    save_weights(plain, service.settings.folder / "versions" / version.file)
    loaded = service.learner._files.load(version)
    assert not isinstance(loaded.model, FrozenHead)
    assert torch.equal(loaded.model[0].weight, tiny_classifier(seed=1)[0].weight)


def test_a_head_that_changes_nothing_is_no_candidate(miniature):
    service = miniature(method=HEAD | {"source_share": 1.0}, labels={"budget": 0})
    learned(service, rounds=2)
    assert [version.number for version in service.storage.versions.all()] == [0]


def test_answers_are_learned_before_the_next_batch(miniature):
    service = miniature(method=HEAD, labels=LABELS)
    learner = service.start()
    service.serve_batch(0)
    learner.run_once()
    service.answer(lambda question: 1)
    service.serve_batch(1)
    assert learner.run_once()
    (batch, _), (answers, _), _ = service.storage.turns.recent(3)
    assert (len(answers.samples), len(batch.samples)) == (0, 10)
    assert answers.settled
    assert not learner.run_once()


def test_answers_are_learned_while_the_gate_looks_at_a_candidate(miniature, monkeypatch):
    service = miniature(method=HEAD, gate=OPEN_GATE, labels=LABELS | {"audit_share": 0.5})
    learner = learned(service)
    service.serve_batch(9)
    learner.run_once()
    service.answer(lambda question: 1, limit=1)
    real, learned_inside = Gatekeeper._judge, []

    def judge(gate, candidate, anchors):
        service.answer(lambda question: 1)  # while it looks
        before = learner.memory.turn
        found = real(gate, candidate, anchors)
        learned_inside.append(learner.memory.turn - before)
        return found

    monkeypatch.setattr(Gatekeeper, "_judge", judge)
    learner.run_once()
    monkeypatch.undo()

    assert learned_inside == [1]
    judged, behind = sorted(service.storage.versions.recent(2), key=lambda one: one.number)
    assert judged.gate is not None
    assert behind.gate is None
    assert not learner.run_once()
    assert newest(service).gate is not None


@pytest.fixture
def working(miniature, monkeypatch):
    """A service whose learner works in a thread, on the clock on the wall."""
    monkeypatch.setattr(process, "limit_cpu", lambda _settings: None)
    service = miniature(method=HEAD, labels=LABELS | {"settle_seconds": 0.5})
    with service.learning(), open_service(service.settings) as storage:
        service.storage.close()
        service.storage = storage
        yield service


@pytest.mark.alone
def test_an_answer_is_learned_within_a_second_of_being_settled(working):
    working.serve_batch(0)
    questions = working.storage.questions
    wait_until(lambda: questions.counts().open > 0)
    delays = []
    while len(delays) < 3 and (lease := questions.lease("ada")) is not None:
        number = lease.question.question
        questions.answer(number, "ada", "label", 1, f"key-{number}")
        settled = time.time() + 0.5
        wait_until(lambda number=number: is_learned(working, number))
        delays.append(time.time() - settled)
    assert delays
    assert max(delays) < 1.0


def is_learned(service, question):
    """Whether a turn that took the answer to a question is finished."""
    turns = service.storage.turns.recent(3)
    return any(question in turn.settled and numbers for turn, numbers in turns)
