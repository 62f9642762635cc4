"""Who answers, and what it costs. No torch in this folder."""

from attakit.label.budget import Budget
from attakit.label.callback import Callback
from attakit.label.known import KnownLabels
from attakit.label.ledger import Ledger
from attakit.label.terminal import Terminal
from attakit.label.wrappers import Delayed, Expiring, Noisy, Skipping

__all__ = [
    "Budget",
    "Callback",
    "Delayed",
    "Expiring",
    "KnownLabels",
    "Ledger",
    "Noisy",
    "Skipping",
    "Terminal",
]
