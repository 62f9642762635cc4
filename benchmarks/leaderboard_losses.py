"""Where SimATTA and the anchor head lose: sentences and a table for the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping

UNADAPTED, OURS = "Source only", ("Anchor head", "SimATTA", "SimATTA as in the paper")
CLEARLY = 0.05  # points below which two means are written as equal
NAMED = 4  # streams in a sentence; the table has all

Accuracies = Mapping[str, Mapping[str, float]]  # by stream and method


def losses(accuracies: Accuracies) -> str:
    """Say for each own method how often it is best and where it does harm, then show all streams.

    >>> print(losses({"digits, mixed": {"SimATTA": 70.0, "Tent": 72.0, "Source only": 71.0}}))
    - **SimATTA** is best on 0 of 1 streams. **It does harm** on 1: digits, mixed (-1.0).
    <BLANKLINE>
    | stream | source model | best | SimATTA |
    |---|---:|---|---:|
    | digits, mixed | 71.0 | 72.0 Tent | **70.0** (3rd) |
    """
    own = [label for label in OURS if any(label in each for each in accuracies.values())]
    lines = [_sentence(label, accuracies) for label in own]
    lines += ["", f"| stream | source model | best | {' | '.join(own)} |"]
    lines += ["|---|---:|---|" + "---:|" * len(own)]
    for title, each in accuracies.items():
        winner = max(each, key=each.__getitem__)
        cells = [title, f"{each[UNADAPTED]:.1f}", f"{each[winner]:.1f} {winner}"]
        lines.append(f"| {' | '.join([*cells, *(_place(label, each) for label in own)])} |")
    return "\n".join(lines)


def _sentence(label: str, accuracies: Accuracies) -> str:
    own = {title: each for title, each in accuracies.items() if label in each}
    best = sum(each[label] > max(each.values()) - CLEARLY for each in own.values())
    text = f"- **{label}** is best on {best} of {len(own)} streams."
    lost = {title: _lost(label, each) for title, each in own.items()}
    harm = sorted((title for title in lost if lost[title] > CLEARLY), key=lost.__getitem__)[::-1]
    if not harm:
        return f"{text} It is nowhere below the source model."
    named = "; ".join(f"{title} (-{lost[title]:.1f})" for title in harm[:NAMED])
    most = ", most of all on " if len(harm) > NAMED else ": "
    return f"{text} **It does harm** on {len(harm)}{most}{named}."


def _lost(label: str, accuracies: Mapping[str, float]) -> float:
    """How far a method is below the source model."""
    return accuracies[UNADAPTED] - accuracies[label]


def _place(label: str, accuracies: Mapping[str, float]) -> str:
    """A method's accuracy and place; bold if it is below the source model."""
    if label not in accuracies:
        return "–"
    value = accuracies[label]
    place = 1 + sum(other > value + CLEARLY for other in accuracies.values())
    shown = f"**{value:.1f}**" if _lost(label, accuracies) > CLEARLY else f"{value:.1f}"
    return f"{shown} ({_ordinal(place)})"


def _ordinal(place: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{'th' if place in (11, 12, 13) else ending}"
