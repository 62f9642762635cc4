from __future__ import annotations

import importlib
from xml.etree import ElementTree

import pytest
from PIL import Image

from attakit.errors import MissingExtra, SettingError
from attakit.report import MeanStd, RunRecord, draw_plot
from attakit.report.panels import plot_panels, source_after, split_mean
from attakit.report.plots import line_style

VARIANTS = [f"IC={ic}, LE={le}" for ic in (1, 0) for le in (1, 0)]


@pytest.fixture
def ablation(make_suite_run):
    """Makes runs of the four variants on both streams."""

    def make(budgets, seeds=(0, 1)):
        return [
            make_suite_run(name, order=order, budget=budget, seed=seed, labels=budget - 10 * place)
            for order in ("domain_after_domain", "random")
            for place, name in enumerate(VARIANTS)
            for budget in budgets
            for seed in seeds
        ]

    return make


def named(panel, label):
    return next(trace for trace in panel.traces if trace.label == label)


def test_an_ablation_has_streams_below_and_targets_beside_source(ablation):
    grid = plot_panels("ablation", ablation((100, 300)))

    assert [[panel.title for panel in row] for row in grid] == [
        [f"pacs, {stream} stream: {what}" for what in ("targets", "source")]
        for stream in ("domain-wise", "random")
    ]
    assert [panel.y_title for panel in grid[0]] == [
        "accuracy along the stream (%),\nmean of segments",
        "accuracy after the stream (%)",
    ]
    trace = named(grid[0][0], "IC=0, LE=1")
    assert [point.x.mean for point in trace.points] == [80.0, 280.0]
    assert trace.points[0].y == MeanStd(61.0, 0.0)
    assert named(grid[1][1], "IC=1, LE=1").points[0].y.mean == 97.0


def test_an_ablation_with_one_budget_goes_along_the_stream(ablation):
    (targets, source), _ = plot_panels("ablation", ablation((300,)))

    assert targets.x_title == "samples seen"
    assert targets.y_title == "accuracy along the stream (%),\nsmoothed"
    assert source.y_title == "accuracy along the stream (%)"
    assert [band.name for band in targets.bands] == ["art_painting", "cartoon", "sketch"]
    assert source.is_empty  # these runs did not measure it on the way


def test_accuracy_along_the_stream_has_a_panel_per_order_and_the_domains_as_bands(ablation):
    (panel,), (_,) = plot_panels("stream", ablation((300,)))

    assert (panel.x_title, len(panel.traces)) == ("samples seen", 4)
    assert [band.name for band in panel.bands] == ["art_painting", "cartoon", "sketch"]


def test_the_mean_of_splits_needs_all_of_them(make_suite_run):
    run = make_suite_run("EATA", segments={"art_painting": 50.0, "cartoon": 70.0})
    torn = make_suite_run("EATA", segments={"art_painting": 50.0, "cartoon": None})

    assert split_mean(run) == 60.0
    assert split_mean(torn) is None


def test_source_accuracy_is_the_held_out_one_if_there_is_one(make_suite_run):
    whole = make_suite_run("EATA", source_accuracy=None, source_accuracy_whole=88.0)

    assert source_after(make_suite_run("EATA", source_accuracy_whole=88.0)) == 97.0
    assert source_after(whole) == 88.0


def test_methods_that_never_ask_are_levels_among_the_labels(make_comparison):
    (panel,), _ = plot_panels("labels", make_comparison())

    tent, simatta = named(panel, "Tent (steps=1)"), named(panel, "SimATTA")
    assert tent.level
    assert not simatta.level
    assert [point.x.mean for point in simatta.points] == [250.0, 450.0]
    assert simatta.points[1].y == MeanStd(76.5, pytest.approx(0.5**0.5))


def test_budgets_in_labels_are_one_method(make_suite_run):
    runs = [
        make_suite_run(f"SimATTA (B ≤ {budget})", budget=budget, labels=budget - 50)
        for budget in (300, 500)
    ]

    ((panel,),) = plot_panels("labels", runs)

    assert [(trace.label, len(trace.points)) for trace in panel.traces] == [("SimATTA", 2)]


def test_streams_of_other_settings_get_a_panel_each(make_suite_run):
    runs = [make_suite_run("EATA", stream={"share": share}) for share in (0.5, 1.0)]

    (row,) = plot_panels("labels", runs)

    assert [panel.title for panel in row] == [
        f"pacs (share = {share}), domain-wise stream" for share in (0.5, 1.0)
    ]


def test_models_get_a_panel_each_and_orders_of_the_domains_are_averaged():
    def run(model, targets, accuracy):
        experiment = {
            "label": "head",
            "model": {"name": model},
            "stream": {"name": "pacs", "targets": targets},
        }
        end = {"stream_accuracy": accuracy, "labels": 9}
        return RunRecord(experiment, {"stream": str(targets)}, [], [], [], end)

    runs = [run(m, [*t], len(t)) for m in ("resnet18", "lite0") for t in ("ab", "ba")]
    (panels,) = plot_panels("labels", runs)

    assert [panel.title for panel in panels] == [
        "pacs (resnet18), domain-wise stream",
        "pacs (lite0), domain-wise stream",
    ]
    assert panels[0].traces[0].points[0].y == MeanStd(2.0, 0.0)


def test_batch_sizes_of_one_method_are_traces_of_their_own(make_suite_run):
    runs = [make_suite_run("EATA", batch_size=size) for size in (100, 16)]

    for kind in ("labels", "ablation"):
        assert [trace.label for trace in plot_panels(kind, runs)[0][0].traces] == [
            "EATA (stream.batch_size=100)",
            "EATA (stream.batch_size=16)",
        ]


def test_pools_are_not_drawn_among_streams(make_suite_run, tmp_path):
    pool = make_suite_run("CLUE", pool=True, labels=300)

    ((panel,),) = plot_panels("labels", [pool, make_suite_run("EATA")])

    assert [trace.label for trace in panel.traces] == ["EATA"]
    with pytest.raises(SettingError, match="Give stream runs"):
        draw_plot([pool], "labels", tmp_path / "plot.png")


@pytest.mark.parametrize("kind", ["dash", "stroke"])
def test_no_two_of_many_methods_look_alike(kind):
    looks = [line_style(number) for number in range(60)]

    assert len({(each.colour, getattr(each, kind)) for each in looks}) == 60


def test_seconds_are_on_a_scale_of_powers(make_comparison):
    (panel,), _ = plot_panels("seconds", make_comparison())

    assert panel.log_x
    assert named(panel, "Tent (steps=1)").points[0].x.mean == 9.0


@pytest.mark.parametrize("kind", ["labels", "seconds", "ablation"])
def test_a_picture_is_drawn(make_comparison, tmp_path, kind):
    path = tmp_path / "deep" / "plot.png"

    draw_plot(make_comparison(), kind, path)

    with Image.open(path) as picture:
        assert picture.width > picture.height > 300
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 20


def test_an_svg_names_its_methods_and_is_the_same_each_time(ablation, tmp_path):
    runs = ablation((300,))

    draw_plot(runs, "ablation", tmp_path / "plot.svg")
    first = (tmp_path / "plot.svg").read_bytes()
    draw_plot(runs, "ablation", tmp_path / "plot.svg")

    ElementTree.fromstring(first)
    assert all(name.encode() in first for name in [*VARIANTS, "art painting"])
    assert (tmp_path / "plot.svg").read_bytes() == first


def test_wrong_kinds_endings_and_empty_runs_are_refused(make_suite_run, tmp_path):
    empty = make_suite_run("EATA", stream_accuracy=None, seconds=None)
    empty.steps.clear()

    with pytest.raises(SettingError, match="kind must be one of ablation, labels, seconds"):
        draw_plot([empty], "pie", tmp_path / "plot.png")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"must end in \.png, \.svg, \.pdf, got 'plot.gif'"):
        draw_plot([empty], "labels", tmp_path / "plot.gif")
    with pytest.raises(SettingError, match="no run has the numbers"):
        draw_plot([empty], "labels", tmp_path / "plot.png")


def test_without_matplotlib_one_sentence_tells_what_to_install(
    make_comparison, tmp_path, monkeypatch
):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)

    with pytest.raises(MissingExtra, match=r"attakit\[report\]"):
        draw_plot(make_comparison(), "labels", tmp_path / "plot.png")


def test_with_one_budget_accuracy_is_drawn_against_the_labels_within_runs():
    def run(label, seed, steps, labels):
        end = {"stream_accuracy": steps[-1][1], "labels": labels}
        lines = [{"size": 1, "received": got, "stream_accuracy": right} for got, right in steps]
        settings = {"label": label, "seed": seed, "labels": {"budget": 10}}
        return RunRecord(settings, {}, [], [], lines, end)

    runs = [
        run("simatta", 0, [(2, 50.0), (4, 60.0)], 4),
        run("simatta", 1, [(2, 54.0), (6, 64.0)], 6),
        run("tent", 0, [(0, 40.0), (0, 55.0)], 0),
    ]

    ((panel,),) = plot_panels("labels", runs)

    points = [(point.x.mean, point.y.mean) for point in named(panel, "simatta").points]
    assert points == [(2.0, 52.0), (5.0, 62.0)]
    assert named(panel, "tent").level
    assert named(panel, "tent").points[0].y.mean == 55.0
