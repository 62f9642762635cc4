"""What tests do without something that this machine lacks."""

import os

import pytest


def do_without(reason):
    """Skip, and say why; where all must be tested, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
