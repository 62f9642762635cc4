"""The objects of one run, and their snapshots."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attakit.build.task import Task
from attakit.engine.buffer import Buffer
from attakit.label.ledger import Ledger
from attakit.nn.classifier import Classifier
from attakit.protocols import Method, Oracle
from attakit.records import StepResult
from attakit.report.accuracy import Accuracy
from attakit.settings.experiment import Experiment
from attakit.store.tensor_file import save_state
from attakit.stream.batches import Stream


@dataclass
class RunState:
    """The objects of one run."""

    experiment: Experiment
    task: Task
    stream: Stream
    method: Method
    oracle: Oracle
    ledger: Ledger
    accuracy: Accuracy
    source_hash: str
    buffer: Buffer
    setup_seconds: float = 0.0  # until the method was built
    seconds: float = 0.0
    updates: int = 0
    source_model: Classifier | None = None  # kept only if features are recorded

    def state_dict(self, step: int) -> dict[str, Any]:
        return {
            "step": step,
            "setup_seconds": self.setup_seconds,
            "seconds": self.seconds,
            "updates": self.updates,
            "method": self.method.state_dict(),
            "oracle": self.oracle.state_dict(),
            "ledger": self.ledger.state_dict(),
            "accuracy": self.accuracy.state_dict(),
            "buffer": self.buffer.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        # A resumed run is set up twice, but once would have been enough.
        self.setup_seconds = state["setup_seconds"]
        self.seconds = state["seconds"]
        self.updates = state["updates"]
        self.method.load_state_dict(state["method"])
        self.oracle.load_state_dict(state["oracle"])
        self.ledger.load_state_dict(state["ledger"])
        self.accuracy.load_state_dict(state["accuracy"])
        if "buffer" in state:  # snapshots of earlier versions have none
            self.buffer.load_state_dict(state["buffer"])
        return int(state["step"])


class Saver:
    """Counts steps, and saves the run every few steps and when it is stopped."""

    def __init__(self, state: RunState, path: Path, every: int, stop: threading.Event) -> None:
        self.state = state
        self.path = path
        self.every = every
        self.stop = stop

    def on_step(self, result: StepResult) -> None:
        self.state.seconds += result.seconds
        self.state.updates += result.training.updates
        step = result.batch.step
        due = self.every and (step + 1) % self.every == 0
        if due or self.stop.is_set():
            save_state(self.path, self.state.state_dict(step))

    def close(self) -> None:
        pass
