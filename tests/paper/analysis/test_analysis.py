import json
import math
from dataclasses import replace

import numpy as np
import pytest

from attakit.errors import SettingError
from attakit.paper.analysis.analysis_page import render_analysis, write_analysis
from attakit.paper.analysis.analysis_records import Analysis, Distances, StepAnalysis
from attakit.paper.analysis.run_analysis import analyse_run, complexity_of
from attakit.paper.analysis.verdicts import is_source_like, verdicts
from attakit.paper.theory import Divergence, optimal_low_weight, target_bound
from attakit.report.features import FEATURES_FILE, pack
from attakit.report.jsonlines import STEPS_FILE
from attakit.report.lines import LineFile
from attakit.report.runs import RunRecord

NUMBERS = {"low_share": 0.75, "low_weight": 0.8, "low_anchors": 30, "high_anchors": 10}


def cloud(centre, rows=40, seed=0):
    sample = np.random.default_rng(seed).normal(size=(rows, 3)).astype(np.float32)
    sample[:, 0] += centre
    return sample


def write_features(folder, steps, *, low=0.0, stream=9.0, high=9.0, low_rows=40):
    """The source lies at 0; the other sets where we say."""
    lines = LineFile(folder / FEATURES_FILE, "features", {})
    lines.write({"kind": "sets", "step": -1, "sets": {"source": pack(cloud(0, seed=99))}})
    for step in steps:
        sets = {
            "stream": cloud(stream, seed=step),
            "low": cloud(low, low_rows, seed=100 + step),
            "high": cloud(high, seed=200 + step),
        }
        packed = {name: pack(rows) for name, rows in sets.items()}
        lines.write({"kind": "sets", "step": step, "sets": packed})


def write_steps(folder, count=4, *, finished=True, training=NUMBERS, **tables):
    experiment = {"method": {"name": "simatta"}}
    first = {"experiment": experiment | tables, "environment": {}, "segments": []}
    lines = LineFile(folder / "steps.jsonl", "run", first)
    for step in range(count):
        told = {"kind": "step", "step": step, "size": 10, "stream_accuracy": 80.0}
        lines.write({**told, "training": training, "source_accuracy": 90.0 if step == 1 else None})
    if finished:
        lines.write({"kind": "end"})


@pytest.fixture
def analysed(tmp_path):
    def analyse(*, steps=4, finished=True, training=NUMBERS, **sets):
        write_steps(tmp_path, finished=finished, training=training)
        write_features(tmp_path, range(steps), **sets)
        return analyse_run(tmp_path)

    return analyse


def test_a_set_that_lies_with_the_source_is_source_like(analysed):
    analysis = analysed(low=0.0, stream=9.0)
    now = analysis.steps[-1].distances

    assert now.source_low.value < 0.4 < 1.8 < now.source_stream.value
    line = verdicts(analysis)[0]
    assert line == (
        f"source-like set is source-like: yes "
        f"({now.source_low.value:.2f} < {now.source_stream.value:.2f})"
    )
    assert "held clearly at 4 of 4 analysed steps" in verdicts(analysis)[1]


def test_a_set_that_lies_farther_than_the_stream_is_not_source_like(analysed):
    analysis = analysed(low=9.0, stream=0.0)

    assert verdicts(analysis)[0].startswith("source-like set is source-like: no (")


def test_a_set_like_the_stream_is_unclear(analysed):
    analysis = analysed(low=1.0, stream=1.0)

    assert "unclear" in verdicts(analysis)[0]
    assert "their intervals overlap" in verdicts(analysis)[0]


def test_the_weights_are_those_of_the_run_and_of_the_theory(analysed):
    step = analysed().steps[-1]
    apart, gap = step.distances.low_stream.value, (100 / 40) ** 0.5

    assert (step.low_share, step.low_weight) == (0.75, 0.8)
    assert (step.low_count, step.high_count) == (30, 10)
    assert step.best_weight == float(optimal_low_weight(0.75, apart, gap)) < 0.75
    assert step.working_bound == float(target_bound(0.8, 0.75, apart, gap))


def test_bounds_are_put_beside_what_was_seen(analysed):
    analysis = analysed()
    step = analysis.steps[-1]

    assert step.target_error == pytest.approx(0.2)
    assert step.source_error == pytest.approx(0.1)
    assert step.target_bound > step.working_bound
    assert step.source_bound > 1
    told = "\n".join(verdicts(analysis))
    assert f"in full: at most {step.target_bound:.1f}, 0.20 seen: the bound says nothing" in told
    assert "from estimating it with 40 samples" in told


def test_a_source_accuracy_that_was_never_measured_is_not_made_up(tmp_path):
    write_steps(tmp_path, count=1)
    write_features(tmp_path, [0])

    assert analyse_run(tmp_path).steps[0].source_error is None


def test_a_live_run_is_analysed_as_far_as_both_files_go(analysed):
    analysis = analysed(finished=False, steps=6)

    assert not analysis.is_finished
    assert [step.step for step in analysis.steps] == [0, 1, 2, 3]
    assert "not finished" in render_analysis(analysis)


def test_a_run_without_features_is_told_how_to_get_them(tmp_path):
    write_steps(tmp_path)

    analysis = analyse_run(tmp_path)

    assert analysis.steps[-1].distances == Distances()
    assert analysis.steps[-1].low_share == 0.75
    assert "report.features=true" in verdicts(analysis)[-1]
    assert "report.features=true" in render_analysis(analysis)


def test_a_method_without_anchors_has_nothing_to_weigh(tmp_path):
    write_steps(tmp_path, training={})
    write_features(tmp_path, range(4))

    analysis = analyse_run(tmp_path, max_steps=1)

    assert analysis.steps[-1].best_weight is None
    assert any("no anchor sets" in line for line in verdicts(analysis))


def test_sets_of_a_few_samples_are_not_compared(analysed):
    step = analysed(low_rows=5).steps[-1]

    assert step.distances.source_low is None
    assert step.distances.low_stream is None
    assert step.distances.source_stream is not None


def test_source_like_set_and_stream_are_compared_by_equally_many_samples(analysed):
    now = analysed(low_rows=12).steps[-1].distances

    assert now.source_low.samples == now.source_stream.samples == (40, 12)
    assert now.low_stream.samples == (12, 160)


def test_at_most_so_many_steps_are_analysed_the_last_among_them(tmp_path):
    write_steps(tmp_path, count=9)
    write_features(tmp_path, range(9))
    seen = []

    analysis = analyse_run(tmp_path, max_steps=3, progress=lambda *done: seen.append(done))

    assert [step.step for step in analysis.steps] == [0, 4, 8]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_run_through_a_pool_is_refused(tmp_path):
    write_steps(tmp_path, pool={"rounds": 5})

    with pytest.raises(SettingError, match="went through a pool"):
        analyse_run(tmp_path)


def test_a_run_without_a_step_is_refused(tmp_path):
    write_steps(tmp_path, count=0, finished=False)

    with pytest.raises(SettingError, match="has no step yet"):
        analyse_run(tmp_path)


def test_the_complexity_is_that_of_the_run():
    table = {"trainer": {"weighting": {"complexity": 7}}}

    assert complexity_of(RunRecord({"method": table}, {}, [], [], [], None)) == 7
    assert complexity_of(RunRecord({"method": "m"}, {}, [], [], [], None)) == 100


def test_the_page_is_whole_and_holds_every_chart(analysed, tmp_path):
    write_analysis(analysed(), tmp_path / "new" / "page.html")

    page = (tmp_path / "new" / "page.html").read_text()
    assert page.endswith("</html>")
    for chart in ("weights", "distances", "bounds"):
        assert f'data-chart="{chart}"' in page
    assert "source-like set is source-like: yes" in page
    assert not list((tmp_path / "new").glob(".*"))


@pytest.mark.browser
def test_a_browser_draws_the_charts_and_reads_their_values(analysed, tmp_path, chromium):
    write_analysis(analysed(), tmp_path / "page.html")
    tab, complaints = chromium.new_page(), []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))

    tab.goto((tmp_path / "page.html").as_uri())
    chart = tab.locator("[data-chart=distances] svg")
    chart.focus()
    chart.press("ArrowLeft")

    assert chart.locator("path.line").count() == chart.locator("path.range").count() == 4
    assert "30 samples" in tab.locator("#tip").text_content()
    assert complaints == []


def test_names_cannot_break_the_page(analysed):
    page = render_analysis(replace(analysed(), label="<script>alert(1)</script>"))

    assert "<script>alert" not in page


def test_intervals_decide_what_is_clear():
    def about(low, stream):
        return is_source_like(Distances(Divergence(*stream, (9, 9)), Divergence(*low, (9, 9))))

    assert about((0.2, 0.1, 0.3), (0.9, 0.8, 1.0)) == "yes"
    assert about((0.9, 0.8, 1.0), (0.2, 0.1, 0.3)) == "no"
    assert about((0.5, 0.2, 0.8), (0.6, 0.3, 0.9)) == "unclear"
    assert is_source_like(Distances()) is None


def test_a_bound_that_says_something_is_told_so():
    step = StepAnalysis(0, 10, 30, 10, 0.75, 0.75, 0.7, Distances(), 0.4, 0.6, None, 0.1, None)
    analysis = Analysis("simatta", True, True, "linear", 4, 100.0, 0.05, (step,))

    assert any("at most 0.6, 0.10 seen: the bound says something" in o for o in verdicts(analysis))


def test_a_head_on_labelled_samples_alone_is_bounded_by_its_own_dimension(tmp_path):
    """B with N = 150, d = 225 and δ = 0.05 is 2·√((225·ln 300 + ln 20) / 300)."""
    write_steps(tmp_path, training={"anchors": 150.0, "dimension": 225.0})
    found = analyse_run(tmp_path)
    last = found.steps[-1]
    bound = 2 * math.sqrt((225 * math.log(300) + math.log(20)) / 300)
    assert last.target_bound == pytest.approx(bound)
    assert (last.low_count, last.high_count, last.dimension) == (0, 150, 225.0)
    told = " ".join(verdicts(found))
    assert "nothing to weigh: 150 labelled samples, and no source-like ones" in told
    assert "(dimension 225, 150 labels; below 1 from 4,057 labels on)" in told


@pytest.mark.parametrize("numbers", [{}, {"dimension": 225.0}])  # as now, and as in version 0.2.0
def test_a_head_whose_network_trains_too_has_no_dimension(tmp_path, numbers):
    write_steps(tmp_path, training={"anchors": 250.0, "trained_stages": 1.0, **numbers})
    found = analyse_run(tmp_path)
    last = found.steps[-1]
    assert (last.high_count, last.dimension, last.target_bound) == (250, None, None)
    told = " ".join(verdicts(found))
    assert "the bounds in full do not apply: stages of the network train too" in told
    assert "the bound says" not in told
    assert analyse_run(tmp_path, dimension=3).steps[-1].target_bound is not None


def test_the_dimension_is_back_with_the_stages_of_the_source(tmp_path):
    write_steps(tmp_path, training={"anchors": 150.0, "trained_stages": 0.0, "dimension": 225.0})
    assert analyse_run(tmp_path).steps[-1].dimension == 225.0


def test_a_dimension_that_is_given_counts_more_than_that_of_a_head(tmp_path):
    write_steps(tmp_path, training={"anchors": 150.0, "dimension": 225.0})
    assert analyse_run(tmp_path, dimension=3).steps[-1].dimension == 3


def test_a_step_without_training_keeps_the_anchors_of_the_step_before(tmp_path):
    write_steps(tmp_path, training={"anchors": 150.0, "dimension": 225.0})
    file = tmp_path / STEPS_FILE
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    last = max(place for place, line in enumerate(lines) if line["kind"] == "step")
    lines[last]["training"] = {}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert analyse_run(tmp_path).steps[-1].high_count == 150
