"""Adapt a model of table rows: sensors of a machine whose calibration drifts from week to week.

    python examples/table.py

The model is a plain MLP without norm layers, so methods that only re-estimate batch-norm statistics
have nothing to change in it.
"""

import numpy as np
import torch
from torch import nn

from attakit.engine import adapt
from attakit.label import Budget
from attakit.methods import AnchorHead, SourceOnly

CLASSES = ["steady", "worn", "broken"]
TYPICAL = np.array([[20.0, 1.0, 0.2, 50.0], [26.0, 1.8, 0.5, 47.0], [35.0, 3.0, 1.2, 42.0]])
SPREAD = np.array([4.0, 0.6, 0.3, 3.0])  # degrees, mm/s, bar, Hz
ROWS = 250  # a week


def measure(seed, drift):
    """A week of measurements: rows, and what a mechanic would say about each machine."""
    draw = np.random.default_rng(seed)
    states = draw.integers(0, 3, size=ROWS)
    rows = TYPICAL[states] + SPREAD * draw.normal(size=(ROWS, 4))
    rows = rows * (1 + drift * np.array([0.15, -0.12, 0.2, 0.0]))  # sensors age in their own ways
    return ((rows - TYPICAL[1]) / (5 * SPREAD)).astype(np.float32), states


def train():
    """The source model, trained on a week with new sensors."""
    torch.manual_seed(0)
    rows, states = (torch.tensor(part) for part in measure(seed=0, drift=0.0))
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
    model = nn.Sequential(model, nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), states).backward()
        optimizer.step()
    return model


weeks = [measure(seed=week, drift=week / 2) for week in range(1, 9)]
truth = {
    f"week-{week}/row-{row}": CLASSES[state]
    for week, (_, states) in enumerate(weeks, start=1)
    for row, state in enumerate(states)
}


def stream():
    """Batches of 50 rows with names that the mechanic understands."""
    for week, (rows, _) in enumerate(weeks, start=1):
        for places in np.split(np.arange(ROWS), 5):
            yield [f"week-{week}/row-{row}" for row in places], torch.tensor(rows[places])


def ask(name, row):
    return truth[name]  # class names are fine: `classes` below says their order


def accuracy(method, budget):
    right = 0
    for batch, prediction in adapt(method, list(stream()), ask, budget=budget, classes=CLASSES):
        said = [CLASSES[place] for place in prediction.logits.argmax(dim=1)]
        right += sum(truth[name] == state for name, state in zip(batch.samples, said, strict=True))
    return right / len(truth)


if __name__ == "__main__":
    model = train()
    budget = Budget(80)
    print(f"source model as it is: {accuracy(SourceOnly(model), Budget(0)):.1%}")
    adapted = accuracy(AnchorHead(model), budget)
    print(f"anchor head:           {adapted:.1%} ({budget.spent} labels)")
