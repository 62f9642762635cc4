"""Checks that every method, selector and oracle must pass, and small parts to test them on."""

from attakit.testing.methods import check_method
from attakit.testing.oracles import check_oracle
from attakit.testing.selectors import check_selector
from attakit.testing.tiny import tiny_batch, tiny_classifier

__all__ = ["check_method", "check_oracle", "check_selector", "tiny_batch", "tiny_classifier"]
