"""The benchmark of simulated teams runs, here at a tiny size."""

from unreliable_annotators import right_labels, row


def test_knowing_who_errs_gives_more_right_labels():
    team = (0.0, 0.0, 0.9, 0.9, 0.9)
    counted, weighed = (
        right_labels(team, questions=100, answers=3, settle=way, seed=0)
        for way in ("majority", "reliability")
    )
    assert weighed > counted + 5


def test_a_row_has_the_single_answer_the_majority_and_the_estimate():
    single, counted, weighed = row((0.0, 0.0), questions=10, answers=2, seeds=2)
    assert single == counted == weighed == "100.0 ± 0.0"
