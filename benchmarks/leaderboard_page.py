"""Write docs/leaderboard.md, docs/leaderboard-streams.md and their figures from the step lines.

    python benchmarks/leaderboard_page.py

`make leaderboard` runs the cells that are missing first. The pages have no figure that is not in
the step lines in results/leaderboard…, so do not edit them by hand: the sentences are here, the
figures come from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from leaderboard_cells import complete_runs, missing_streams
from leaderboard_grid import CHOICES, FILES, ROOT, SEED, best_entries, tried_sets
from leaderboard_losses import UNADAPTED, Accuracies, losses

from attakit.report.contests import Contest, contests
from attakit.report.leaderboard import leaderboard_tables, mean_accuracies, ranking_of
from attakit.report.plots import draw_plot
from attakit.report.runs import RunRecord
from attakit.report.table_forms import render_tables

PAGE = ROOT / "docs" / "leaderboard.md"
STREAMS_PAGE = ROOT / "docs" / "leaderboard-streams.md"
FIGURES = ROOT / "docs" / "figures"
PUBLISHED = (FILES / "published.toml",)
TUNED = tuple(sorted(FILES.glob("tuned-*.toml")))

INTRODUCTION = """\
# Leaderboard

All methods of attakit on {streams} streams of {sets} data sets, with the same number of labels for
all that ask, and with seeds 0, 1 and 2. `make leaderboard` runs the cells that are missing and
writes this page. [Every stream](leaderboard-streams.md) has a table of its own, with confidence
intervals.

## In short

"""

TERMS = """\
## What was run

- **Streams**: {streams}.
- **Models**: small networks trained on the source domain, as [data sets](data-sets.md) says. They
  are in `experiments/leaderboard/sources`, so that every machine starts from the same.{pacs}
- **Labels**: a budget of 150 for every method that asks, in batches of 100 samples. EATTA, HILTTA
  and CPATTA ask at their own pace, and some spend less. BiTTA spends it on yes/no questions at the
  price of a class, three per batch. "Enhanced Tent" and "Anchor head, random labels" get theirs at
  random, as many as their partner.
- **SimATTA** has the defaults of attakit, "SimATTA as in the paper" the paper's training. The
  anchor head is attakit's own method. SimATTA with yes/no questions is in
  [results](results.md#yes-or-no).
- **Columns**: "source" is the accuracy on held-out source samples after the stream. "× source
  only" is the seconds as a multiple of those that inference alone takes. MB is the peak memory of
  the process with all libraries. Other programs ran on the two cores at the same time, so seconds
  are rough.
- **Versions**: {versions}
{missing}
To add a method, add one entry to `experiments/leaderboard/published.toml` and its settings to
`benchmarks/leaderboard_grid.py`, then run `make leaderboard`.
"""
VERSIONS = """\
  Digits gradual and recurring and all of PACS are of revision 327be0d6, except for SimATTA on
  digits. SimATTA on digits is of 4f147a5e, since which it has statistics by style ([decision
  28](decisions/0028-simatta-has-styles.md)); its other rows are of f63bea02 or later, and styles
  change nothing there. HILTTA on abalone, names and digits domain-wise is of 327be0d6 too, and
  so is EATTA on digits domain-wise and on both correlated streams. The anchor head's other rows
  are of c6a89043, and so are BiTTA's on digits and on three orders of names. On digits mixed and
  correlated, all but SimATTA are of that revision too. The code of CPATTA and Enhanced Tent has
  not changed since their rows, except for messages. All other methods were run again on digits
  domain-wise and gave the same accuracies to the last digit, so their older rows stand. Seconds
  were measured at different times on a busy machine. On digits gradual and recurring, on PACS, and
  for SimATTA, HILTTA and EATTA it was so busy that they say little. Of the rows with chosen
  settings, all of PACS and of BiTTA are of bee45d2a. So are the anchor head, SimATTA, EATTA and
  HILTTA on abalone and names. The others are of 4f147a5e on digits, and of 16ff4a2 on abalone and
  names. All rows of the anchor head and of SimATTA are older than e3285333 and f44ab877. The
  first changed the search for the share of the source's statistics, the second the first weights
  of competing answers. The source model of PACS is older than bcd42268, which draws smaller
  heads."""
PACS = """
- **PACS**: a twentieth of every target domain at 64 pixels, in batches of 50, with 20 labels. The
  model is a MobileNetV2 with
  ImageNet weights, fine-tuned on photo. Make it before `make leaderboard`:
  `python benchmarks/imagenet_weights.py weights`, then
  `attakit pretrain experiments/pacs/source-64.toml`. Such a network on
  small images is not what published settings were made for: CPATTA and SimATTA as in the paper
  collapse with theirs. Both gain from a tenth of the learning rate (chosen settings).
  Results on more images, at 128 and 224 pixels, are in
  [results](results.md) and
  [anchor head](anchor-head.md)."""
MISSING = "- **Not run yet**: {streams}. `make leaderboard` runs them."

TUNED_TEXT = """\
The best of three settings for every method, by the accuracy on the domain-wise stream with seed
{seed}, which is not reported. The settings are in `benchmarks/leaderboard_grid.py`. Mostly it is
the learning rate: the published one, a tenth of it and ten times it. Every data set has a choice of
its own. Streams: {streams}. {untried}
"""
UNTRIED = "No choice yet on {streams}: three settings of every method take long there."


def page() -> str:
    """The page with rankings and summaries."""
    published, tuned = complete_runs(*PUBLISHED), complete_runs(*TUNED)
    found = contests(published)
    sets = {_data_set(one) for one in found}
    parts = [
        INTRODUCTION.format(streams=len(found), sets=len(sets)) + _summary(published),
        "## Published settings\n",
        *_chapter(published, "leaderboard-published.png"),
        "## Chosen settings\n",
        TUNED_TEXT.format(seed=SEED, streams=_streams(tuned), untried=_untried(sets)),
        *_chapter(tuned, "leaderboard-tuned.png"),
        "### What was chosen\n",
        _choices_table(),
        TERMS.format(
            streams=_streams(published),
            pacs=PACS if "pacs" in sets else "",
            versions=VERSIONS.strip(),
            missing=_missing(),
        ),
    ]
    return "\n".join(parts)


def streams_page() -> str:
    """The page with a table for every stream."""
    parts = [
        "# Leaderboard: every stream\n",
        "The [leaderboard](leaderboard.md) ranks the methods over these streams and says what was "
        "run. `make leaderboard` writes both pages.\n",
    ]
    for title, suites in (("Published settings", PUBLISHED), ("Chosen settings", TUNED)):
        parts += [f"## {title}\n", render_tables(leaderboard_tables(complete_runs(*suites))[1:])]
    return "\n".join(parts)


def draw_figures() -> None:
    """Draw the critical-difference diagrams."""
    for suites, name in ((PUBLISHED, "published"), (TUNED, "tuned")):
        draw_plot(complete_runs(*suites), "ranks", FIGURES / f"leaderboard-{name}.png")


def _missing() -> str:
    """Name the streams of the suite that are not complete, if there are any."""
    labels = missing_streams(*PUBLISHED)
    return MISSING.format(streams=", ".join(labels)) + "\n" if labels else ""


def _untried(sets: Iterable[str]) -> str:
    """Name the data sets of the page on which no settings were chosen."""
    streams = sorted(set(sets) - set(tried_sets()))
    return UNTRIED.format(streams=", ".join(streams)) if streams else ""


def _summary(runs: Sequence[RunRecord]) -> str:
    """Who is ahead, who is not clearly behind, and how many do better than the source model."""
    ranking = ranking_of(runs)
    accuracies = _accuracies(runs)
    first, *others = ranking.ranks
    reach = ranking.ranks[first] + ranking.critical_difference
    near = [label for label in others if ranking.ranks[label] < reach]
    harmless = [label for label in ranking.ranks if _never_harms(label, accuracies)]
    return "\n".join(
        [
            f"- **{first}** has the best average rank, {ranking.ranks[first]:.2f} of "
            f"{len(ranking.ranks)}. Not clearly behind: {', '.join(near) or 'none'}.",
            f"- Never below the source model on any stream: {', '.join(harmless) or 'no method'}.",
            "- The best method differs from stream to stream: "
            + "; ".join(f"{label} wins {count}" for label, count in _wins(accuracies).items())
            + ".",
            "",
        ]
    )


def _never_harms(label: str, accuracies: Accuracies) -> bool:
    own = [each for each in accuracies.values() if label in each]
    return label != UNADAPTED and all(each[label] >= each[UNADAPTED] for each in own)


def _wins(accuracies: Accuracies) -> dict[str, int]:
    """How many streams each winner wins, most first."""
    winners = Counter(max(each, key=each.__getitem__) for each in accuracies.values())
    return dict(sorted(winners.items(), key=lambda pair: (-pair[1], pair[0])))


def _chapter(runs: Sequence[RunRecord], figure: str) -> Iterator[str]:
    accuracies = _accuracies(runs)
    yield render_tables(leaderboard_tables(runs)[:1])
    yield f"![Average ranks, joined where they do not differ clearly](figures/{figure})\n"
    yield "### Mean accuracy by data set and by order\n"
    yield _means_table(runs) + "\n"
    yield "### Where SimATTA and the anchor head lose\n"
    yield "Bold: below the source model. In brackets: the place among all methods.\n"
    yield losses(accuracies) + "\n"


def _accuracies(runs: Sequence[RunRecord]) -> dict[str, dict[str, float]]:
    return {f"{_data_set(one)}, {_order(one)}": mean_accuracies(one) for one in contests(runs)}


def _data_set(contest: Contest) -> str:
    return contest.title.split(", ")[0]


def _order(contest: Contest) -> str:
    parts = contest.title.split(", ")
    return next(one for one in parts if one.endswith(" stream")).removesuffix(" stream")


def _means_table(runs: Sequence[RunRecord]) -> str:
    """Mean accuracies of all ranked methods, over the streams of one data set or of one order."""
    groups: dict[str, list[Mapping[str, float]]] = {}
    for read in (_data_set, _order):
        for contest in contests(runs):
            groups.setdefault(read(contest), []).append(mean_accuracies(contest))
    lines = [f"| method | {' | '.join(groups)} |", "|---|" + "---:|" * len(groups)]
    for label in ranking_of(runs).ranks:
        means = (sum(one[label] for one in own) / len(own) for own in groups.values())
        lines.append(f"| {label} | {' | '.join(f'{mean:.1f}' for mean in means)} |")
    return "\n".join(lines)


def _streams(runs: Sequence[RunRecord]) -> str:
    """The streams of each data set, in words."""
    found: dict[str, list[str]] = {}
    for one in contests(runs):
        found.setdefault(_data_set(one), []).append(_order(one))
    return "; ".join(f"{name} {', '.join(orders)}" for name, orders in found.items())


def _choices_table() -> str:
    """Which of the three values each method has on each data set."""
    chosen = best_entries()
    lines = [f"| method | setting | {' | '.join(chosen)} |", "|---|---|" + "---|" * len(chosen)]
    for label, choice in CHOICES.items():
        values = [best[label]["label"].partition("=")[2] or "published" for best in chosen.values()]
        lines.append(f"| {label} | `{choice.setting}` | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    draw_figures()
    for path, text in ((PAGE, page()), (STREAMS_PAGE, streams_page())):
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
