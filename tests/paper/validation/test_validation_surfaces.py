import numpy as np
import pytest

from attakit.errors import SettingError
from attakit.paper.validation import PLANS, Fitting, SurfaceSettings, compute_surfaces
from attakit.paper.validation.surface_cells import SurfaceCell, mixture, sample_weights, train_cell

QUICK = Fitting(updates=2, batch_size=16)
SMALL = SurfaceSettings(points=3, large=60, small=40)


@pytest.fixture
def compute(testbed, tmp_path):
    def run(*names, settings=SMALL, **options):
        return compute_surfaces(
            testbed,
            names,
            tmp_path / "surfaces.jsonl",
            settings=settings,
            fitting=QUICK,
            workers=0,
            **options,
        )

    return run


def test_weights_give_each_set_its_share_of_the_loss():
    weights = sample_weights(10, 4, 0.7)

    assert (weights[:4].sum() / 10).item() == pytest.approx(0.7)
    assert (weights[4:].sum() / 10).item() == pytest.approx(0.3)


def test_equal_share_and_weight_weigh_all_samples_alike():
    assert sample_weights(10, 4, 0.4).tolist() == pytest.approx([1.0] * 10)


def test_a_mixture_has_its_share_and_grows_with_it(loaded):
    few, count = mixture(loaded, 40, 0.25, seed=0)
    more, _ = mixture(loaded, 40, 0.5, seed=0)

    assert (len(few), count) == (40, 10)
    assert set(few.names[:10]) < set(more.names[:20])
    assert set(more.names[20:]) < set(few.names[10:])
    assert set(few.names[:10]) <= set(loaded.source_train.names)
    assert set(few.names[10:]) <= set(loaded.target_train.names)


def test_a_cell_depends_on_nothing_but_itself(testbed):
    cells = [SurfaceCell(40, True, 0.5, weight, seed=0) for weight in (0.5, 0.5, 0.0)]

    first, again, other = [train_cell(testbed, QUICK, cell) for cell in cells]

    assert first == again
    assert first["target_loss"] != other["target_loss"]


def test_a_surface_has_no_cell_where_an_empty_set_would_carry_weight(compute):
    losses = compute("target-small")["target-small"].losses

    there = [[True, False, False], [True, True, True], [False, False, True]]
    assert np.isfinite(losses).tolist() == there


def test_a_surface_has_no_cell_that_the_data_cannot_fill(compute, loaded):
    too_many = len(loaded.source_train) + 10
    settings = SurfaceSettings(points=3, large=too_many, small=40)

    losses = compute("target-large", settings=settings)["target-large"].losses

    assert np.isfinite(losses).sum(axis=1).tolist() == [1, 3, 0]


def test_three_surfaces_share_their_models(compute):
    seen = []

    found = compute(
        "target-small",
        "source-small",
        "combined-small",
        progress=lambda done, total: seen.append((done, total)),
    )

    assert seen[-1] == (5, 5)
    target, source, combined = [surface.losses for surface in found.values()]
    assert np.allclose(combined, (target + source) / 2, equal_nan=True)


def test_a_second_call_trains_nothing(compute, monkeypatch):
    first = compute("target-small")["target-small"].losses
    monkeypatch.setattr(
        "attakit.paper.validation.surface_cells.fit", lambda *_, **__: pytest.fail("trained again")
    )

    assert np.array_equal(compute("target-small")["target-small"].losses, first, equal_nan=True)


def test_more_seeds_are_averaged_and_use_the_models_that_are_there(compute):
    one = compute("target-small")["target-small"].losses
    seen = []

    settings = SurfaceSettings(points=3, large=60, small=40, seeds=2)
    two = compute("target-small", settings=settings, progress=lambda *now: seen.append(now))

    assert seen[0] == (5, 10)
    assert not np.array_equal(two["target-small"].losses, one, equal_nan=True)


def test_models_differ_by_their_start(compute):
    found = compute("target-large-start", "target-large")

    before, after = [surface.lowest().loss for surface in found.values()]
    assert before > after
    assert [surface.title for surface in found.values()] == [
        "Target loss, 60 samples, without source pre-training",
        "Target loss, 60 samples, with source pre-training",
    ]


def test_the_paper_has_five_surfaces():
    assert len(PLANS) == len(set(PLANS.values())) == 5


def test_an_unknown_surface_is_refused(compute):
    with pytest.raises(SettingError, match="must be one of target-large-start"):
        compute("nothing")


@pytest.mark.parametrize("setting", [{"points": 2}, {"large": 1}, {"small": 1}, {"seeds": 0}])
def test_impossible_grids_are_refused(setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        SurfaceSettings(**setting)
