"""Write docs/leaderboard.md and its figures from the step lines in results/leaderboard….

    python benchmarks/leaderboard_page.py

`make leaderboard` runs the cells that are missing first. The page has no figure that is not in the
step lines, so do not edit it by hand: the sentences are here, the figures come from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from leaderboard_grid import CHOICES, ROOT, SEED, best_entries

from attakit.report.contests import contests
from attakit.report.leaderboard import leaderboard_tables, mean_accuracies
from attakit.report.plots import draw_plot
from attakit.report.runs import RunRecord, find_runs, read_run
from attakit.report.table_forms import render_tables

PAGE = ROOT / "docs" / "leaderboard.md"
FIGURES = ROOT / "docs" / "figures"
PUBLISHED, TUNED = ROOT / "results" / "leaderboard", ROOT / "results" / "leaderboard-tuned"
UNADAPTED, OURS = "Source only", ("SimATTA", "SimATTA as in the paper", "Anchor head")
CLEARLY = 0.05  # points below which two means are written as equal

INTRODUCTION = """\
# Leaderboard

All methods on three data sets, with seeds 0, 1 and 2. `make leaderboard` runs the cells that are
missing and writes this page from the step lines in `results/leaderboard…`. To add a method, add
one entry to `experiments/leaderboard/published.toml` and run the command.

- **Data sets**: handwritten digits (pictures), abalone (a table) and names (texts), each with a
  small source model. [Data sets](data-sets.md) has more. PACS is missing: not all methods were run
  on it. [Results](results.md) has PACS runs of fewer methods.
- **Streams**, in batches of 100: {streams}.
  Other orders in `published.toml` have not been run yet.
- **Labels**: a budget of 150 for every method that asks. EATTA, HILTTA and CPATTA ask at their own
  pace, and some spend less. BiTTA spends it on yes/no questions at the price of a class, three per
  batch. "Enhanced Tent" and "Anchor head, random labels" get theirs at random,
  as many as their partner.
- **SimATTA** has the defaults of attakit, "SimATTA as in the paper" the paper's training. The
  anchor head is attakit's own method.
- **Columns**: "source" is the accuracy on held-out source samples after the stream. "× source
  only" is the seconds as a multiple of those that inference alone takes. MB is the peak memory of
  the process with all libraries. Other programs ran on the two cores at the same time, so seconds
  are rough.
- **Versions**: rows of BiTTA are of revision 72acca7, of the anchor head with published settings of
  cbd6310, all others of 16ff4a2. Since then SimATTA's statistics have changed (080bdc8, dec3940),
  and EATTA and HILTTA (bb9fb76, to agree with their authors' code). The commands may print other
  figures now.
- BiTTA was run later and in another way: do not compare its seconds and MB. It has no rank until it
  has been run on all streams. SimATTA with yes/no questions is in `experiments/digits/yes-no.toml`.
- All networks here are small. The page says nothing about large ones.
"""

TUNED_TEXT = """\
The best of three settings for every method, by the accuracy on the domain-wise stream with seed
{seed}, which is not reported. The settings are in `benchmarks/leaderboard_grid.py`. Mostly it is
the learning rate: the published one, a tenth of it and ten times it. Every data set has a choice of
its own. Run so far: {streams}.
"""

NO_TUNED = """\
## Chosen settings

Not run yet: `make leaderboard` chooses the best of three settings for every method.
"""


def page() -> str:
    """The whole page."""
    published = _runs(PUBLISHED)
    tuned = _runs(TUNED) if TUNED.exists() else []
    parts = [
        INTRODUCTION.format(streams=_streams(published)),
        "## Published settings\n",
        *_chapter(published, "leaderboard-published.png"),
        *(_tuned_chapter(tuned) if tuned else [NO_TUNED]),
        "## Every stream, published settings\n",
        _stream_tables(published),
    ]
    if tuned:
        parts += ["## Every stream, chosen settings\n", _stream_tables(tuned)]
    return "\n".join(parts)


def draw_figures() -> None:
    """Draw the critical-difference diagrams."""
    for folder, name in ((PUBLISHED, "published"), (TUNED, "tuned")):
        if folder.exists():
            draw_plot(_runs(folder), "ranks", FIGURES / f"leaderboard-{name}.png")


def _runs(folder: Path) -> list[RunRecord]:
    return [read_run(one) for one in find_runs([folder])]


def _chapter(runs: Sequence[RunRecord], figure: str) -> Iterator[str]:
    yield render_tables(leaderboard_tables(runs)[:1])
    yield f"![Average ranks, joined where they do not differ clearly](figures/{figure})\n"
    yield "### Where SimATTA and the anchor head lose\n"
    accuracies = {one.title: mean_accuracies(one) for one in contests(runs)}
    yield "\n".join(_losses(label, accuracies) for label in OURS) + "\n"


def _tuned_chapter(runs: Sequence[RunRecord]) -> Iterator[str]:
    yield "## Chosen settings\n"
    yield TUNED_TEXT.format(seed=SEED, streams=_streams(runs))
    yield from _chapter(runs, "leaderboard-tuned.png")
    yield "### What was chosen\n"
    yield _choices_table()


def _streams(runs: Sequence[RunRecord]) -> str:
    """The streams of each data set, in words."""
    found: dict[str, list[str]] = {}
    for one in contests(runs):
        data_set, *_, stream = one.title.split(", ")
        found.setdefault(data_set, []).append(stream.removesuffix(" stream"))
    return "; ".join(f"{name} {', '.join(orders)}" for name, orders in found.items())


def _losses(label: str, accuracies: Mapping[str, Mapping[str, float]]) -> str:
    """Where a method is not the best, and where it is worse than doing nothing."""
    own = {title: each for title, each in accuracies.items() if label in each}
    best = [title for title, each in own.items() if _gap(label, each) < CLEARLY]
    lines = [f"- **{label}** is best on {len(best)} of {len(own)} streams."]
    for title, each in own.items():
        if title not in best:
            winner = max(each, key=each.__getitem__)
            ahead = sum(value > each[label] + CLEARLY for value in each.values())
            lines.append(
                f"    - {title}: {each[label]:.1f}, {_gap(label, each):.1f} points behind "
                f"{winner}; {_methods(ahead)} ahead of it{_harm(label, each)}."
            )
    return "\n".join(lines)


def _gap(label: str, accuracies: Mapping[str, float]) -> float:
    return max(accuracies.values()) - accuracies[label]


def _methods(count: int) -> str:
    return f"{count} method is" if count == 1 else f"{count} methods are"


def _harm(label: str, accuracies: Mapping[str, float]) -> str:
    lost = accuracies.get(UNADAPTED, 0.0) - accuracies[label]
    return f". **It does harm**: {lost:.1f} points below the source model" if lost > CLEARLY else ""


def _choices_table() -> str:
    """Which of the three values each method has on each data set."""
    chosen = best_entries()
    lines = [f"| method | setting | {' | '.join(chosen)} |", "|---|---|" + "---|" * len(chosen)]
    for label, choice in CHOICES.items():
        values = [best[label]["label"].partition("=")[2] or "published" for best in chosen.values()]
        lines.append(f"| {label} | `{choice.setting}` | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def _stream_tables(runs: Sequence[RunRecord]) -> str:
    return render_tables(leaderboard_tables(runs)[1:])


def main() -> None:
    draw_figures()
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
