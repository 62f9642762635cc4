"""The saved state of a mostly frozen network: a hash, and weights only if needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from attakit.errors import StateError
from attakit.nn.weights import weights_hash


class NetworkState:
    """Saves a network as the hash of its first weights; with its weights only while it trains.

    Parameters
    ----------
    network
        The network, before anything changes it.

    Examples
    --------
    >>> state = NetworkState(nn.Linear(2, 2).requires_grad_(False)).state_dict()
    >>> state["weights"] is None
    True
    """

    def __init__(self, network: nn.Module) -> None:
        self.hash = weights_hash(network)
        self._network = network

    def state_dict(self) -> dict[str, Any]:
        trains = any(each.requires_grad for each in self._network.parameters())
        return {"hash": self.hash, "weights": self._network.state_dict() if trains else None}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["hash"] != self.hash:
            raise StateError(
                f"The saved state belongs to another model ({state['hash']}), this one is "
                f"{self.hash}. Continue it with the model that wrote it."
            )
        if state["weights"] is not None:
            self._network.load_state_dict(state["weights"])
