from __future__ import annotations

import numpy as np
import pytest
import torch

from attakit.report.projection import project, project_aligned


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=-1)


def random_features(rows, columns=6, seed=0):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def test_points_of_a_plane_keep_their_distances_up_to_scale():
    flat = random_features(9, 2)
    turned = flat @ torch.linalg.qr(random_features(2, 2, seed=1)).Q
    lifted = torch.cat([turned, torch.full((9, 3), 5.0)], dim=1)

    plane = project(lifted)

    ratio = distances(plane)[0, 1:] / distances(flat.numpy())[0, 1:]
    assert ratio == pytest.approx(ratio[0], rel=1e-4)


def test_the_picture_has_unit_spread():
    plane = project(random_features(20) * 1000)

    assert (plane**2).sum(axis=1).mean() == pytest.approx(1.0)


@pytest.mark.parametrize("features", [torch.zeros(0, 4), torch.ones(1, 4), torch.ones(5, 4)])
def test_points_that_do_not_differ_lie_in_the_middle(features):
    assert project(features).tolist() == [[0.0, 0.0]] * len(features)


def test_features_with_one_number_lie_on_a_line():
    assert project(torch.tensor([[1.0], [2.0], [3.0]]))[:, 1].tolist() == [0.0, 0.0, 0.0]


def test_features_that_are_not_finite_do_no_harm():
    features = random_features(5)
    features[2, 1] = float("nan")

    assert np.isfinite(project(features)).all()


def test_a_mirrored_picture_is_turned_back_to_the_one_before():
    names = [f"s{n}" for n in range(12)]
    features = random_features(12)
    now = project_aligned(names, features, {})
    mirrored = {name: (-y, x) for name, (x, y) in now.items()}

    again = project_aligned(names, features, mirrored)

    assert np.array([*again.values()]) == pytest.approx(np.array([*mirrored.values()]), abs=2e-3)


def test_placing_changes_no_distance():
    names = [f"s{n}" for n in range(8)]
    features = random_features(8)
    free = np.array([*project_aligned(names, features, {}).values()])
    before = {name: (float(n), 1.0) for n, name in enumerate(names)}

    held = np.array([*project_aligned(names, features, before).values()])

    assert distances(held) == pytest.approx(distances(free), abs=5e-3)
