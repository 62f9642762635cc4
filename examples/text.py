"""Adapt a model of token ids: support tickets that begin to use words of a new product.

    python examples/text.py

The model knows the words it was trained on. Tickets about the new product have other words, whose
meaning it can only learn from people.
"""

import random

import torch
from torch import nn

from attakit.engine import adapt
from attakit.label import Budget
from attakit.methods import AnchorHead, SourceOnly

CLASSES = ["billing", "delivery", "technical"]
OLD = {
    "billing": ["invoice", "charged", "refund", "card", "price", "paid", "twice"],
    "delivery": ["parcel", "late", "courier", "address", "lost", "arrived", "box"],
    "technical": ["crash", "login", "screen", "error", "update", "slow", "reset"],
}
NEW = {
    "billing": ["subscription", "renewal", "voucher", "downgrade", "prorated"],
    "delivery": ["locker", "drone", "pickup", "slot", "carrier"],
    "technical": ["firmware", "pairing", "bluetooth", "sensor", "battery"],
}
COMMON = ["my", "the", "please", "help", "again", "since", "yesterday", "with", "order", "thanks"]
WORDS = ["", *COMMON, *(word for topic in (*OLD.values(), *NEW.values()) for word in topic)]
LENGTH = 8


def write(draw, topic, share_of_new):
    """A ticket: some words of its topic, the rest of no topic."""
    words = [
        draw.choice((NEW if draw.random() < share_of_new else OLD)[topic]) for _ in range(3)
    ] + draw.choices(COMMON, k=LENGTH - 3)
    draw.shuffle(words)
    return " ".join(words)


def tokenise(texts):
    return torch.tensor([[WORDS.index(word) for word in text.split()] for text in texts])


class Reader(nn.Module):
    """Mean of word vectors, then two layers."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(len(WORDS), 32)
        self.hidden = nn.Linear(32, 32)
        self.head = nn.Linear(32, len(CLASSES))

    def forward(self, ids):
        return self.head(torch.relu(self.hidden(self.words(ids).mean(dim=1))))


def train():
    """The source model, trained on 600 tickets from before the new product."""
    torch.manual_seed(0)
    draw = random.Random(0)
    topics = [draw.choice(CLASSES) for _ in range(600)]
    ids = tokenise([write(draw, topic, share_of_new=0.0) for topic in topics])
    labels = torch.tensor([CLASSES.index(topic) for topic in topics])
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(ids), labels).backward()
        optimizer.step()
    return model


draw = random.Random(1)
tickets = []
for number in range(1500):
    topic = draw.choice(CLASSES)
    tickets.append((write(draw, topic, share_of_new=min(1.0, number / 500)), topic))
topics = {f"ticket-{number}": topic for number, (_, topic) in enumerate(tickets)}
batches = []
for start in range(0, len(tickets), 50):
    texts = [text for text, _ in tickets[start : start + 50]]
    batches.append(([f"ticket-{start + place}" for place in range(50)], tokenise(texts)))


def ask(name, ids):
    """A person would read `" ".join(WORDS[place] for place in ids)`, and know the topic."""
    return topics[name]


def accuracy(method, budget):
    right = 0
    for batch, prediction in adapt(method, batches, ask, budget=budget, classes=CLASSES):
        said = [CLASSES[place] for place in prediction.logits.argmax(dim=1)]
        right += sum(topics[name] == topic for name, topic in zip(batch.samples, said, strict=True))
    return right / len(topics)


model = train()
budget = Budget(100)
print(f"source model as it is: {accuracy(SourceOnly(model), Budget(0)):.1%}")
print(f"anchor head:           {accuracy(AnchorHead(model), budget):.1%} ({budget.spent} labels)")
