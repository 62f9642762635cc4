from dataclasses import replace

import pytest

from attakit.records import Training
from attakit.report.share_watch import ShareWatch


@pytest.fixture
def watched(make_step_result, caplog):
    """Return the warnings of a run with these numbers of each step's training."""

    def watch(*steps):
        reporter = ShareWatch("SimATTA")
        for number, numbers in enumerate(steps):
            result = make_step_result(number, [0, 1])
            reporter.on_step(replace(result, training=Training(1, numbers)))
        reporter.close()
        return [record.getMessage() for record in caplog.records]

    return watch


def test_a_run_that_ends_with_few_source_like_samples_says_so(watched):
    (message,) = watched({"low_share": 0.6}, {"low_share": 0.43})

    assert message.startswith("SimATTA ends with 43 % source-like samples")
    assert "method.low_entropy_capacity" in message


def test_a_share_that_is_low_only_at_the_start_is_fine(watched):
    assert watched({"low_share": 0.1}, {"low_share": 0.5}) == []


def test_steps_without_training_keep_the_last_share(watched):
    assert len(watched({"low_share": 0.4}, {})) == 1


def test_methods_without_source_like_samples_are_not_blamed(watched):
    assert watched({"loss": 1.0}) == []
    assert watched({"low_share": 0.0}) == []
