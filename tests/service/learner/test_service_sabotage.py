"""Somebody who answers at random cannot make the service worse; honest people make it better."""

import numpy as np
import pytest
import torch

from attakit.build import data
from attakit.build.models import digits_model
from attakit.nn.classifier import Classifier
from attakit.randomness import generator
from attakit.settings.experiment import StreamTable

SERVED, BATCH = 500, 100


@pytest.fixture
def outlines(quick_digits):
    """Outlined digits in random order, their classes, and a model that never saw outlines."""
    task = data.load_task(StreamTable(targets=("outline",)))
    torch.set_num_threads(1)
    samples = task.targets.parts["outline"]
    order = generator(0, "order").permutation(len(samples.names))
    inputs = samples.load(order.tolist())
    labels = [int(samples.labels[at]) for at in order]
    return inputs, labels, digits_model(task)


def run(service, inputs, say):
    """Serve a part of the digits, with people who answer at once."""
    learner = service.start()
    for at in range(0, SERVED, BATCH):
        service.serve(inputs[at : at + BATCH].numpy())
        while learner.run_once():
            pass
        service.answer(say)
        while learner.run_once():
            pass


def random_answers(seed):
    return lambda question: int(generator(seed, "sabotage", question.question).integers(10))


def promoted(service):
    """The model that answers in the end."""
    number = service.storage.versions.current().version
    version = service.storage.versions.all()[number]
    return service.learner._files.load(version)


def accuracy(model, inputs, labels):
    with torch.no_grad():
        guesses = model(inputs[SERVED:]).logits.argmax(dim=1).tolist()
    return float(np.mean([a == b for a, b in zip(guesses, labels[SERVED:], strict=True)]))


METHODS = {
    # With the paper's trainer, which random answers spoil: else there is nothing to hold back.
    "simatta": {
        "name": "simatta",
        "norm": "frozen",
        "trainable": "all",
        "selector": {"inits": 1, "initial_clusters": 30, "cluster_growth": 20},
        "trainer": {"name": "balanced", "max_updates": 15},
    },
    # Without blending, which needs no answers: it would hide what random answers spoil.
    "anchor_head": {"name": "anchor_head", "source_share": 1.0},
    "default": {"name": "anchor_head"},
}
PACE = {"simatta": {}, "anchor_head": {"per_1000": 240}, "default": {"per_1000": 240}}


def settings(model, method):
    return {
        "model": model,
        "classes": tuple("0123456789"),
        "method": METHODS[method],
        "labels": {"budget": 200, "audit_share": 0.4, **PACE[method]},
        "learning": {"batch_size": BATCH, "checkpoint_every": 100},
    }


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_the_gate_lets_honest_work_through(miniature, outlines, method):
    inputs, labels, model = outlines
    truth = {f"s{number}": label for number, label in enumerate(labels)}
    honest = miniature(**settings(model, method))

    run(honest, inputs, lambda question: truth[question.sample])

    source = accuracy(Classifier(model), inputs, labels)
    assert accuracy(promoted(honest), inputs, labels) > source + 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "seed"),
    [*[("simatta", seed) for seed in (1, 2, 3, 4)], *[("anchor_head", seed) for seed in (1, 2, 3)]],
)
def test_the_gate_holds_against_random_answers(miniature, outlines, method, seed):
    inputs, labels, model = outlines
    sabotaged = miniature(**settings(model, method))

    run(sabotaged, inputs, random_answers(seed))

    source = accuracy(Classifier(model), inputs, labels)
    assert accuracy(promoted(sabotaged), inputs, labels) >= source
    spoiled = Classifier(sabotaged.learner.memory.method.adapted_model)
    if method == "simatta":  # random answers hardly spoil the anchor head
        assert accuracy(spoiled, inputs, labels) < source  # else there was nothing to hold back
    held = [version.gate.reason for version in sabotaged.storage.versions.all() if version.gate]
    assert any("`gate.trust = 0`" in reason for reason in held)  # people are not believed


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_random_answers_do_not_bring_the_default_method_below_the_source_model(
    miniature, outlines, seed
):
    inputs, labels, model = outlines
    sabotaged = miniature(**settings(model, "default"))

    run(sabotaged, inputs, random_answers(seed))

    assert accuracy(promoted(sabotaged), inputs, labels) >= accuracy(
        Classifier(model), inputs, labels
    )
