"""The methods of the demo, as settings tables."""

from __future__ import annotations

from typing import Any

LR = 2e-3  # as in experiments/digits

DEMO_METHODS: dict[str, dict[str, Any]] = {
    "source only": {"name": "source_only"},
    "batch norm": {"name": "batch_norm"},
    "tent": {"name": "tent"},
    "simatta": {"name": "simatta", "trainer": {"lr": LR}},
    # SimATTA in all but the choice of samples: the control for "is asking cleverly worth it?"
    "random labels": {
        "name": "simatta",
        "high_entropy_bound": 0.0,
        "include_bound": True,
        "selector": {"name": "uniform"},
        "trainer": {"lr": LR},
    },
}
