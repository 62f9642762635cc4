"""What tests do without something: a tool that this machine lacks, or a package they take away."""

import os
import sys

import pytest


def do_without(reason):
    """Skip, and say why; where all must be tested, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def hide_package(monkeypatch, package, importers):
    """Let modules whose names begin with `importers` fail to import a package."""
    for name in [name for name in sys.modules if name.startswith(importers)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
