"""Memory: labelled samples, samples that wait for a label, and states on disk."""

from attakit.records import UNKNOWN
from attakit.store.anchors import Anchors
from attakit.store.class_memory import BalancedReservoir, Kept, TimelyMemory
from attakit.store.tensor_file import load_state, save_state
from attakit.store.waiting import Waiting, waiting_rows
from attakit.store.window import Window

__all__ = [
    "UNKNOWN",
    "Anchors",
    "BalancedReservoir",
    "Kept",
    "TimelyMemory",
    "Waiting",
    "Window",
    "load_state",
    "save_state",
    "waiting_rows",
]
