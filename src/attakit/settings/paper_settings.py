"""The paper's settings of SimATTA on PACS, for `as_in_paper = true` in a file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic_core import PydanticCustomError

AS_IN_PAPER = "as_in_paper"

# The same as `SimATTA.as_in_paper`. The growth of the clusters sets the pace of asking.
PAPER_SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "low_entropy_bound": 1e-4,
        "high_entropy_bound": 1e-2,
        "trainable": "all",
        "norm": "frozen",
        "low_entropy_capacity": "unlimited",
        "trust_asked": True,
        "selector": {
            "name": "incremental",
            "initial_clusters": 10,
            "cluster_growth": 1.0,
            "inits": 10,
        },
        "trainer": {
            "name": "balanced",
            "lr": 1e-3,
            "momentum": 0.9,
            "window": 5,
            "patience": 5,
            "max_updates": 100,
            "weighting": {"cold_start_size": 0},
        },
    }
)


def with_paper_settings(method: Mapping[str, Any]) -> dict[str, Any]:
    """Return a [method] table with the paper's settings instead of `as_in_paper = true`.

    Other settings in the table replace the paper's. A table inside, such as [method.selector],
    replaces only what it names, unless it names another selector or trainer.

    >>> found = with_paper_settings({"as_in_paper": True, "selector": {"cluster_growth": 2.0}})
    >>> found["selector"]["cluster_growth"], found["selector"]["inits"], found["norm"]
    (2.0, 10, 'frozen')
    """
    given = dict(method)
    chosen = given.pop(AS_IN_PAPER)
    if not isinstance(chosen, bool):
        raise PydanticCustomError(AS_IN_PAPER, f"a table whose {AS_IN_PAPER} is true or false")
    return _merged(PAPER_SETTINGS, given) if chosen else given


def _merged(paper: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables in which the given values replace the paper's."""
    result = {**paper, **given}
    for key, table in paper.items():
        if isinstance(table, Mapping):
            own = given.get(key, {})
            own = {"name": own} if isinstance(own, str) else own
            same = isinstance(own, Mapping) and {**table, **own}.get("name") == table.get("name")
            result[key] = _merged(table, own) if same else own
    return result
