"""People answer late, or never, and the process is stopped in between.

    python examples/late_answers.py

Questions go to an oracle that never makes the stream wait. People answer two to five batches later
and skip one question in five. A skipped question costs nothing. Halfway the process
stops. A new one continues from one file, with the open questions and the budget as they were.
"""

from pathlib import Path

import torch
from torch import nn

from attakit.engine import drain, run
from attakit.label import Budget, Delayed, Expiring, KnownLabels, Ledger, Skipping
from attakit.methods import AnchorHead
from attakit.report import Accuracy
from attakit.store import load_state, save_state
from attakit.stream import Stream, arrange, blobs

domains = blobs()  # points in the plane: "near", then "turned", then "far"
near = domains.parts["near"]
targets = domains.only("turned", "far")
stream = Stream(targets, arrange(targets, "domain_after_domain"), batch_size=20)
batches = list(stream)


def train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        answers = model(near.load(range(len(near))))
        nn.functional.cross_entropy(answers, torch.tensor(near.labels)).backward()
        optimizer.step()
    return model


def set_up(model):
    """A method, people and a ledger, as they are made at every start of the process."""
    people = Skipping(KnownLabels(stream.truth.labels), rate=0.2, seed=0)
    # A question without an answer after six rounds expires, and its label is refunded.
    oracle = Expiring(Delayed(people, rounds=2, jitter=3, seed=0), rounds=6)
    return AnchorHead(model), oracle, Ledger(Budget(40))


model, saved, score = train(), Path("run.safetensors"), Accuracy(stream.truth.labels)

method, oracle, ledger = parts = set_up(model)
run(batches[:10], method, oracle, ledger, [score], samples=len(stream.truth.labels))
save_state(saved, {str(place): part.state_dict() for place, part in enumerate(parts)})
print(f"stopped: {ledger.budget.spent} labels spent, {oracle.pending} questions open")

method, oracle, ledger = parts = set_up(model)
for place, part in enumerate(parts):
    part.load_state_dict(load_state(saved)[str(place)])
print(f"started again: {ledger.budget.spent} labels spent, {oracle.pending} questions open")
run(batches[10:], method, oracle, ledger, [score], samples=len(stream.truth.labels) - 200)
drain(method, oracle, ledger, wait=0.1)  # the last answers, or a refund
print(f"accuracy on the stream: {score.stream:.1f} %, {ledger.budget.spent} labels spent")
