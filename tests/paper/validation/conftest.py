"""The digits, loaded once per test, with few samples to measure on."""

import pytest

from attakit.paper.validation import Testbed, load_testbed


@pytest.fixture
def testbed(quick_digits):
    return Testbed(test_samples=60)


@pytest.fixture
def loaded(testbed):
    return load_testbed(testbed)
