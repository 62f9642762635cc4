import numpy as np

from attakit.nn.gaussians import Card, Gaussians, Projection


def test_likelihoods_are_those_of_a_mixture_of_gaussians():
    groups = Gaussians(
        np.array([0.25, 0.75]), np.array([[0.0], [2.0]]), np.array([[[1.0]], [[4.0]]])
    )

    def density(value, mean, deviation):
        gap = (value - mean) / deviation
        return np.exp(-(gap**2) / 2) / deviation / np.sqrt(2 * np.pi)

    rows = np.array([[-1.0], [3.0]])
    parts = [0.25 * density(rows[:, 0], 0, 1), 0.75 * density(rows[:, 0], 2, 2)]
    assert np.allclose(groups.likelihoods(rows), np.log(parts[0] + parts[1]))
    assert np.allclose(groups.members(rows)[:, 0], parts[0] / (parts[0] + parts[1]))


def test_a_projection_finds_the_direction_in_which_rows_and_source_differ():
    noise = np.random.default_rng(0).normal(size=(100, 3))
    card = Card.of(noise + np.array([0.0, 50.0, 0.0]))
    projection = Projection.of(noise, card, directions=1)
    gap = projection(card.mean[None]) - projection(noise.mean(axis=0)[None])
    assert abs(gap[0, 0]) > 0.9


def test_a_card_becomes_the_gaussian_of_its_samples():
    rows = np.random.default_rng(1).normal(size=(400, 4)) * [1.0, 2.0, 3.0, 4.0]
    projection = Projection.of(rows, None, directions=2)
    home = Gaussians.of_card(Card.of(rows), projection)
    turned = projection(rows)
    assert np.allclose(home.means[0], turned.mean(axis=0))
    assert np.allclose(home.covariances[0], np.cov(turned.T, bias=True) + 0.01 * np.eye(2))
