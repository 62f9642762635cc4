"""The methods of the demo, as settings tables."""

from __future__ import annotations

from typing import Any

DEMO_METHODS: dict[str, dict[str, Any]] = {
    "source only": {"name": "source_only"},
    "batch norm": {"name": "batch_norm"},
    "tent": {"name": "tent"},
    "anchor head": {"name": "anchor_head"},
    "simatta": {"name": "simatta"},
    # SimATTA with random samples: the control for "does the selector help?"
    "random labels": {
        "name": "simatta",
        "high_entropy_bound": 0.0,
        "include_bound": True,
        "selector": {"name": "uniform"},
    },
}
