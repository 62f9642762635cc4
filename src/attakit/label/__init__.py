"""Oracles, budget and ledger: who answers, and what it costs. Nothing here imports torch."""

from attakit.label.budget import Budget
from attakit.label.callback import Callback
from attakit.label.crowd import Crowd
from attakit.label.dawid_skene import Consensus, Reliability, Vote, estimate_consensus
from attakit.label.endpoint import Endpoint
from attakit.label.known import KnownLabels
from attakit.label.ledger import Ledger
from attakit.label.model_oracle import ModelOracle
from attakit.label.team import Team
from attakit.label.terminal import Terminal
from attakit.label.wrappers import Delayed, Expiring, Noisy, Skipping

__all__ = [
    "Budget",
    "Callback",
    "Consensus",
    "Crowd",
    "Delayed",
    "Endpoint",
    "Expiring",
    "KnownLabels",
    "Ledger",
    "ModelOracle",
    "Noisy",
    "Reliability",
    "Skipping",
    "Team",
    "Terminal",
    "Vote",
    "estimate_consensus",
]
