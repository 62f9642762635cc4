"""A method that does as it is told, and a stream it can run on."""

import pytest
import torch

from attakit.queries import Query, SampleId
from attakit.records import Batch, Prediction, Step, Training


class Scripted:
    """Asks about the first `count` samples of each batch, within its allowance if it is honest."""

    def __init__(self, count=2, honest=True):
        self.count = count
        self.honest = honest
        self.allowances = []
        self.learned = []

    def predict(self, inputs):
        return Prediction(torch.zeros(len(inputs), 3), torch.zeros(len(inputs), 2))

    def step(self, batch, allowance):
        self.allowances.append(allowance.count)
        count = min(self.count, allowance.count) if self.honest else self.count
        queries = tuple(Query(sample, batch.step) for sample in batch.samples[:count])
        return Step(self.predict(batch.inputs), queries)

    def learn(self, answers):
        self.learned.append(tuple(answers))
        return Training(updates=len(answers))

    @property
    def labels(self):
        """All labels that came, by sample."""
        answers = [answer for turn in self.learned for answer in turn]
        return {answer.query.sample: answer.label for answer in answers}

    @property
    def turns(self):
        """How many answers each turn of the loop brought."""
        return [len(turn) for turn in self.learned]


def make_batches(steps=4, size=3):
    return [
        Batch(
            step, tuple(SampleId(f"{step}-{number}") for number in range(size)), torch.zeros(3, 1)
        )
        for step in range(steps)
    ]


def make_labels(steps=40, size=8):
    return {
        SampleId(f"{step}-{number}"): (step + number) % 3
        for step in range(steps)
        for number in range(size)
    }


@pytest.fixture
def scripted():
    return Scripted


@pytest.fixture
def batches():
    return make_batches()


@pytest.fixture
def labels():
    return make_labels()
