"""Adapt your own image model: here a small CNN that meets thicker, noisier and rotated digits.

    python examples/images.py

Replace `train` with your trained model, `stream` with your batches, and `ask` with whatever knows
the right class: a person, a database, a slower model.
"""

import numpy as np
import torch
from scipy import ndimage
from sklearn.datasets import load_digits
from torch import nn

from attakit.engine import adapt
from attakit.label import Budget
from attakit.methods import AnchorHead, BatchNorm, SourceOnly

digits = load_digits()
images = (digits.images / 8 - 1).astype(np.float32)[:, None]  # 1 × 8 × 8, from -1 to 1
labels = torch.tensor(digits.target)


def train():
    """The source model: trained on the first 900 digits, as they are."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(1024, 10)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = torch.tensor(images[:900])
    for _ in range(20):
        for rows in torch.randperm(900).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
            optimizer.step()
    return model.eval()


def stream():
    """The world afterwards: the other 897 digits in three styles, one after the other."""
    noise = np.random.default_rng(0).normal(scale=0.5, size=images.shape)
    styles = [
        np.maximum(images, np.roll(images, 1, axis=3)),  # a thicker pen
        images + noise,  # a worse camera
        ndimage.rotate(images, 25, axes=(2, 3), reshape=False, mode="nearest"),
    ]
    for number, style in enumerate(styles):
        for rows in torch.arange(900 + 299 * number, 900 + 299 * (number + 1)).split(50):
            names = [f"digit-{row}" for row in rows.tolist()]
            yield names, torch.tensor(style[rows.numpy()], dtype=torch.float32)


def ask(name, image):
    return digits.target[int(name.removeprefix("digit-"))]


def accuracy(method, budget):
    """Share of right predictions, each made before any label of its batch was known."""
    right = total = 0
    for batch, prediction in adapt(method, list(stream()), ask, budget=budget):
        truth = torch.tensor([ask(name, None) for name in batch.samples])
        right += (prediction.logits.argmax(dim=1) == truth).sum().item()
        total += len(truth)
    return right / total


model = train()
budget = Budget(60)
print(f"source model as it is:     {accuracy(SourceOnly(model), Budget(0)):.1%}")
print(f"batch norm, no labels:     {accuracy(BatchNorm(model), Budget(0)):.1%}")
adapted = AnchorHead(model)
print(f"anchor head, few labels:   {accuracy(adapted, budget):.1%} ({budget.spent} labels)")

# One module that contains the model and what was learned, for use elsewhere.
torch.save(adapted.adapted_model.state_dict(), "adapted.pt")
