from attakit.report.fairness import check_fairness
from attakit.report.runs import RunRecord


def runs(*, models=("m", "m"), orders=("o", "o"), sizes=(100, 100)):
    """Two methods with one seed on one stream, and what their runs say."""
    return [
        (
            "night",
            RunRecord(
                {"label": label, "seed": 0, "stream": {"batch_size": size}},
                {"model": model, "stream": order},
                *([], [], [], {}),
            ),
        )
        for label, model, order, size in zip(
            ("Tent", "SimATTA"), models, orders, sizes, strict=True
        )
    ]


def test_what_all_cells_share_is_said():
    found = check_fairness(runs())

    assert found.warnings == ()
    assert found.shared == (
        "same model m",
        "same stream o",
        "batch size 100 for all",
        "predictions scored before updates",
    )


def test_another_model_or_order_is_a_warning_that_says_where():
    found = check_fairness(runs(models=("m", "n"), orders=("o", "p")))

    assert found.warnings == (
        "Not the same model in night, seed 0: m in Tent, n in SimATTA.",
        "Not the same stream in night, seed 0: o in Tent, p in SimATTA.",
    )
    assert not any(part.startswith("same") for part in found.shared)


def test_other_batch_sizes_are_a_warning_unless_the_paper_has_them():
    given = runs(sizes=(16, 100))

    assert check_fairness(given).warnings == ("Batch sizes differ: 16 for Tent, 100 for SimATTA.",)
    paper = check_fairness(given, own_batch_sizes=True)
    assert paper.warnings == ()
    assert "batch size 16 for Tent, 100 for SimATTA, as in the paper" in paper.shared


def test_where_no_cell_came_to_its_end_nothing_is_said_to_be_fair():
    assert check_fairness([]).shared == ()


def test_runs_without_a_stream_are_not_compared_by_it():
    found = check_fairness(runs(orders=(None, None)))

    assert found.warnings == ()
    assert not any("stream" in part for part in found.shared)
