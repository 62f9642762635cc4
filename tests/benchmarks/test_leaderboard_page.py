"""The pages of the leaderboard are what the committed step lines say."""

import re

from leaderboard_losses import losses
from leaderboard_page import FIGURES, PAGE, STREAMS_PAGE, page, streams_page

from wrap_prose import wrap


def test_the_committed_pages_are_what_the_command_writes():
    assert PAGE.read_text(encoding="utf-8") == wrap(page())
    assert STREAMS_PAGE.read_text(encoding="utf-8") == wrap(streams_page())


def test_every_figure_of_the_page_is_there():
    shown = re.findall(r"figures/(leaderboard-\w+\.png)", PAGE.read_text(encoding="utf-8"))
    assert "leaderboard-published.png" in shown
    assert all((FIGURES / name).stat().st_size > 1000 for name in shown)


def test_the_page_says_where_a_method_loses_and_where_it_does_harm():
    accuracies = {
        "easy": {"SimATTA": 80.0, "Tent": 70.0, "Source only": 60.0},
        "hard": {"SimATTA": 50.0, "Tent": 70.0, "Source only": 60.0},
        "even": {"SimATTA": 69.0, "Tent": 70.0, "Source only": 60.0},
    }
    assert losses(accuracies).splitlines() == [
        "- **SimATTA** is best on 1 of 3 streams. **It does harm** on 1: hard (-10.0).",
        "",
        "| stream | source model | best | SimATTA |",
        "|---|---:|---|---:|",
        "| easy | 60.0 | 80.0 SimATTA | 80.0 (1st) |",
        "| hard | 60.0 | 70.0 Tent | **50.0** (3rd) |",
        "| even | 60.0 | 70.0 Tent | 69.0 (2nd) |",
    ]


def test_a_method_that_is_nowhere_below_the_source_model_is_said_to_be_so():
    accuracies = {"easy": {"Anchor head": 80.0, "Source only": 80.0}}
    first = losses(accuracies).splitlines()[0]
    assert first.endswith("best on 1 of 1 streams. It is nowhere below the source model.")
