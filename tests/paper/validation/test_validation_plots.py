import io
import sys

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from attakit.errors import MissingExtra, SettingError
from attakit.paper.validation.clustering_plot import ClusterStep, draw_clustering
from attakit.paper.validation.entropy_plot import EntropyRow, draw_entropy_sets, entropy_table
from attakit.paper.validation.surface_plot import LossSurface, draw_surfaces
from attakit.report.canvas import import_drawing, new_figure, save_figure
from attakit.report.summaries import MeanStd

AXIS = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_BYTES = 150_000


@pytest.fixture
def surface():
    """A valley a little below the line; the outer columns have one cell each."""
    share, weight = np.meshgrid(AXIS, AXIS, indexing="ij")
    losses = (weight - share + 0.25) ** 2 + share
    losses[0, 1:] = losses[-1, :-1] = np.nan
    return LossSurface("Target loss, 40 samples", AXIS, AXIS, losses)


@pytest.fixture
def rows():
    names = ("low entropy", "high entropy")
    trained = [
        EntropyRow(name, way, MeanStd(0.5, 0.1), MeanStd(1.25))
        for way in ("retrain", "fine-tune")
        for name in names
    ]
    return [*trained, EntropyRow("source model", "as it is", MeanStd(0.2), MeanStd(1.9))]


@pytest.fixture
def steps():
    random = np.random.default_rng(0)
    found = []
    for known in (0, 3):
        count = 20 + known
        found.append(
            ClusterStep(
                "sketch",
                random.normal(size=(count, 2)),
                np.where(np.arange(count) < known, 7.0, 1.0),
                np.where(np.arange(count) < known, 9.0, 4.0),
                random.integers(0, 4, count),
                np.arange(count) < known,
                np.arange(count) >= count - 3,
            )
        )
    return found


def test_low_points_lie_where_the_valley_is(surface):
    assert [(low.share, low.weight) for low in surface.lowest_per_share()] == [
        (0.25, 0.0),
        (0.5, 0.25),
        (0.75, 0.5),
    ]
    assert surface.mean_shift() == pytest.approx(-0.25)


def test_the_lowest_of_all_may_be_in_a_column_without_choice(surface):
    assert (surface.lowest().share, surface.lowest().weight) == (0.0, 0.0)


def test_without_a_choice_there_is_no_shift():
    only = np.array([[1.0, np.nan], [np.nan, 2.0]])

    assert np.isnan(LossSurface("", (0.0, 1.0), (0.0, 1.0), only).mean_shift())


@pytest.mark.parametrize("count", [1, 5])
def test_surfaces_become_a_small_picture(surface, tmp_path, count):
    draw_surfaces([surface] * count, tmp_path / "new" / "surface.png")

    with Image.open(tmp_path / "new" / "surface.png") as picture:
        assert picture.width > 300 * min(count, 3)
    assert (tmp_path / "new" / "surface.png").stat().st_size < MOST_BYTES


def test_a_flat_surface_can_be_drawn(tmp_path):
    flat = LossSurface("flat", AXIS, AXIS, np.ones((5, 5)))

    draw_surfaces([flat], tmp_path / "flat.png")

    assert (tmp_path / "flat.png").exists()


def test_marks_stand_in_the_picture(surface, tmp_path):
    draw_surfaces([surface], tmp_path / "surface.svg")
    text = (tmp_path / "surface.svg").read_text()

    for colour in ("#ff8c1a", "#e0193c", "#19d219"):
        assert colour in text


def test_a_surface_without_models_is_told(tmp_path):
    nothing = LossSurface("Target loss", AXIS, AXIS, np.full((5, 5), np.nan))

    with pytest.raises(SettingError, match="Target loss: no cell could be trained"):
        draw_surfaces([nothing], tmp_path / "surface.png")
    with pytest.raises(SettingError, match="no surfaces given"):
        draw_surfaces([], tmp_path / "surface.png")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_equal_figures_give_equal_files(steps, tmp_path, ending):
    for name in ("one", "two"):
        draw_clustering(steps, tmp_path / f"{name}.{ending}")

    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_clustering_tells_its_numbers(steps, tmp_path, monkeypatch):
    titles = []
    monkeypatch.setattr(
        "attakit.paper.validation.clustering_plot._prepare",
        lambda axes, limits, title: titles.append(title),
    )

    draw_clustering(steps, tmp_path / "clustering.png")

    assert titles == [
        "Initial step, sketch: 4 clusters",
        "3 new anchors",
        "Step 1, sketch: 4 clusters",
        "3 new anchors, 3 from before",
    ]


def test_clustering_without_steps_is_refused(tmp_path):
    with pytest.raises(SettingError, match="no steps given"):
        draw_clustering([], tmp_path / "clustering.png")


def test_entropy_rows_become_a_table_and_a_picture(rows, tmp_path):
    console = Console(width=100, file=io.StringIO())
    console.print(entropy_table(rows, title="Losses"))
    draw_entropy_sets(rows, tmp_path / "entropy.png")

    shown = console.file.getvalue()
    assert "0.500 ± 0.100" in shown
    assert "1.250" in shown
    assert "source model" in shown
    assert (tmp_path / "entropy.png").stat().st_size < MOST_BYTES


def test_a_file_of_another_form_is_refused(tmp_path):
    with pytest.raises(SettingError, match=r"must end in \.png, \.svg, \.pdf, got 'figure\.bmp'"):
        save_figure(new_figure(1, 1), tmp_path / "figure.bmp")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(MissingExtra, match=r"attakit\[report\]"):
        import_drawing("matplotlib.figure")
