"""What tests of suites share: a small grid."""

import pytest

from attakit.bench.suites.cells import expand
from attakit.settings.suite import parse_suite

BASE = {
    "stream": {"targets": ["outline"], "share": 0.08, "batch_size": 16},
    "labels": {"budget": 6},
    "report": {"source_every": 0, "save_every": 2, "post_adaptation": False},
}
QUICK = {"selector": {"inits": 1}, "trainer": {"max_updates": 2}}
METHODS = {
    "Source only": {"method": {"name": "source_only"}},
    "Tent": {"method": {"name": "tent"}, "batch_size": 8},
    "SimATTA": {"method": {"name": "simatta", **QUICK}},
    "Random": {
        "method": {**QUICK, "high_entropy_bound": 0.0, "selector": "uniform"},
        "match": "SimATTA",
    },
}


@pytest.fixture
def small_suite(tmp_path):
    """Makes a suite of the named methods: four steps of sixteen digits each."""

    def make(*labels, base=(), **tables):
        methods = [{"label": label, **METHODS[label]} for label in labels]
        return parse_suite(
            {
                "name": "small",
                "folder": str(tmp_path / "results"),
                "base": {**BASE, **dict(base)},
                "grid": {"methods": methods, **tables},
            }
        )

    return make


@pytest.fixture
def small_grid(small_suite):
    """Makes the cells of such a suite."""
    return lambda *labels, **tables: list(expand(small_suite(*labels, **tables)))
