"""Truth about samples."""

import pytest

from attakit.errors import StreamError
from attakit.stream import Truth


def test_truth_must_say_everything_about_every_sample():
    with pytest.raises(StreamError, match="got 1, 2 and 1 of them"):
        Truth({"a": 0}, {"a": "x", "b": "x"}, {"a": "x"}, ("cat",))
