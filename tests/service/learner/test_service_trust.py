"""Whom the service believes: honest people under heavy drift, and no one who makes it worse."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from attakit.nn.weights import save_weights, weights_hash
from attakit.service.storage.rows import Question, Version

CLASSES, LEARNED, AUDITED = 3, 70, 16


class Reads(nn.Module):
    """Reads a class from its input: the true one, or what a badly drifted model would say."""

    def __init__(self, column):
        super().__init__()
        self.head = nn.Linear(2 * CLASSES, CLASSES, bias=False)
        chosen = torch.zeros(CLASSES, 2 * CLASSES)
        chosen[:, column * CLASSES : (column + 1) * CLASSES] = torch.eye(CLASSES)
        self.head.weight = nn.Parameter(chosen)

    def forward(self, inputs):
        named = nn.functional.one_hot(inputs[:, :2].long(), CLASSES).flatten(1).float()
        return self.head(inputs[:, 2:3] * named)


@pytest.fixture
def service(miniature):
    """A service whose source model is right on 44 % of samples, and on 60 % where it is sure."""
    made = miniature(model=Reads(1), learning={"batch_size": 1000, "batch_seconds": 1e9})
    made.start()
    return made


def drifted_samples(count, seed):
    random = np.random.default_rng(seed)
    truth = random.integers(CLASSES, size=count)
    sure = np.arange(count) % 4 == 0
    right = random.random(count) < np.where(sure, 0.7, 0.36)
    guess = np.where(right, truth, (truth + random.integers(1, CLASSES, count)) % CLASSES)
    return np.stack([truth, guess, np.where(sure, 6.0, 1.0), 0 * truth], axis=1)


def judged(service, say, seed=0):
    """Let people answer, add a version that is always right, and return what the gate says."""
    rows = drifted_samples(LEARNED + AUDITED, seed)
    names = service.serve(rows)
    known = dict(zip(names, rows, strict=True))
    purposes = ["learn"] * LEARNED + ["audit"] * AUDITED
    asked = [
        Question(0, name, 0, purpose, 0, 0.5, ((0, 1.0),), service.now)
        for name, purpose in zip(names, purposes, strict=True)
    ]
    said = [{"source_guess": int(row[1]), "source_entropy": float(1 / row[2])} for row in rows]
    # Those of the audit are as an earlier version of attakit put them.
    asked[:LEARNED] = [
        replace(one, **guess) for one, guess in zip(asked[:LEARNED], said, strict=False)
    ]
    service.storage.questions.put(asked)
    service.answer(lambda question: say(int(known[question.sample][0])))
    service.storage.questions.settle()
    return decision(service, learned_from(say))


def learned_from(say):
    """The model that learned all that people say."""
    model = Reads(0)
    with torch.no_grad():
        order = [say(kind) for kind in range(CLASSES)]
        if sorted(order) == [*range(CLASSES)]:
            model.head.weight[:, :CLASSES] = torch.eye(CLASSES)[order].T
    return model


def decision(service, model):
    file = "turn-000000050.safetensors"
    save_weights(model, service.settings.folder / "versions" / file)
    version = Version(1, 50, file, weights_hash(model), LEARNED, service.now)
    service.storage.versions.add(version)
    service.start()
    return service.storage.versions.all()[1].gate


def test_honest_people_get_their_model_although_the_source_model_is_badly_off(service):
    gate = judged(service, lambda truth: truth)

    assert gate.passed, gate.reason
    assert service.storage.versions.current().version == 1


def test_people_who_all_use_the_same_wrong_code_do_not_get_theirs(service):
    gate = judged(service, lambda truth: (truth + 1) % CLASSES)

    assert gate.numbers["candidate_accuracy"] == 1.0  # it learned the code perfectly
    assert not gate.passed
    assert "gate.trust = 0" in gate.reason


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_people_who_roll_dice_get_no_model(service, seed):
    dice = np.random.default_rng(100 + seed)
    gate = judged(service, lambda _: int(dice.integers(CLASSES)), seed)

    assert not gate.passed


def test_people_who_always_say_the_same_get_no_model(service):
    assert not judged(service, lambda _: 0).passed
