"""Methods without labels answer as their authors' code did, on a small network and stream.

Each file in `reference/` names the repository, its commit and the settings. Random draws (views,
orders of patches) were attakit's own, handed to that code.
"""

import pytest
import torch

from attakit.methods import LAME, METHODS, ROID, DeYO, RoTTA
from attakit.queries import Allowance
from attakit.records import Batch
from recorded_runs import CLASSES, network, recording, stream

# Corrected logits of ROID and CMF are those of the recording times the number of classes.
FACTORS = {"cmf": CLASSES, "deyo": 1, "note": 1, "rdumb": 1, "roid": CLASSES, "rotta": 1}


def answers(method, batches):
    return [method.step(batch, Allowance(0)) for batch in batches]


@pytest.mark.parametrize("name", FACTORS)
def test_answers_along_a_stream_are_those_of_the_authors_code(name):
    recorded = recording(name)
    steps = answers(METHODS[name](network(), **recorded["settings"]), stream(**recorded["stream"]))

    for step, expected in zip(steps, recorded["logits"], strict=True):
        given = step.prediction.logits / FACTORS[name]
        torch.testing.assert_close(given, torch.tensor(expected), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("affinity", ["knn", "rbf", "linear"])
def test_corrected_probabilities_are_those_of_the_authors_code(affinity):
    recorded = recording("lame")
    method = LAME(network(), affinity=affinity, **recorded["settings"])
    steps = answers(method, stream(**recorded["stream"]))

    for step, expected in zip(steps, recorded["probabilities"][affinity], strict=True):
        given = step.prediction.logits.softmax(dim=1)
        torch.testing.assert_close(given, torch.tensor(expected), atol=1e-5, rtol=1e-4)


def test_deyo_keeps_the_same_samples():
    recorded = recording("deyo")
    steps = answers(DeYO(network(), **recorded["settings"]), stream(**recorded["stream"]))

    counts = [[step.numbers["sure"], step.numbers["kept"]] for step in steps]
    assert counts == recorded["sure and kept"]


def test_rotta_remembers_the_same_samples():
    recorded = recording("rotta")
    method = RoTTA(network(), **recorded["settings"])
    answers(method, stream(**recorded["stream"]))

    assert sorted(each.age for each in method.memory.kept) == recorded["ages"]


def test_single_samples_in_a_window_are_answered_as_by_the_authors_code():
    recorded = recording("window")
    batches = stream(**recorded["stream"])[:3]
    singles = [
        Batch(0, batch.samples[row : row + 1], batch.inputs[row : row + 1])
        for batch in batches
        for row in range(len(batch))
    ]
    steps = answers(ROID(network(), **recorded["settings"]), singles)

    given = torch.cat([step.prediction.logits for step in steps])
    torch.testing.assert_close(given, torch.tensor(recorded["logits"][0]), atol=2e-4, rtol=1e-4)
