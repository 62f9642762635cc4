"""Memory: labelled samples, samples that wait for a label, and whole runs on disk."""

from attakit.records import UNKNOWN
from attakit.store.anchors import Anchors
from attakit.store.tensor_file import load_state, save_state
from attakit.store.waiting import Waiting, waiting_rows

__all__ = [
    "UNKNOWN",
    "Anchors",
    "Waiting",
    "load_state",
    "save_state",
    "waiting_rows",
]
