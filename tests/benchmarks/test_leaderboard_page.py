"""docs/leaderboard.md is what the committed step lines say."""

import re

from leaderboard_page import FIGURES, PAGE, _losses, page

from wrap_prose import wrap


def test_the_committed_page_is_what_the_command_writes():
    assert PAGE.read_text(encoding="utf-8") == wrap(page())


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
    assert _losses("SimATTA", accuracies).splitlines() == [
        "- **SimATTA** is best on 1 of 3 streams.",
        "    - hard: 50.0, 20.0 points behind Tent; 2 methods are ahead of it. **It does harm**: "
        "10.0 points below the source model.",
        "    - even: 69.0, 1.0 points behind Tent; 1 method is ahead of it.",
    ]
