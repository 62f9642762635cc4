"""Run folders made by hand, small enough to check by eye."""

from made_runs import (  # noqa: F401
    make_comparison,
    make_run,
    make_run_step_result,
    make_step_result,
    make_suite_run,
)
