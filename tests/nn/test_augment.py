import math

import pytest
import torch

from attakit.nn.augment import NOISE, augment, blur, jitter_colours, move, shuffle_patches
from attakit.nn.seeding import torch_generator


def random(seed=0):
    return torch_generator(seed, "test")


def images(*shape, seed=0):
    return torch.randn(shape, generator=random(seed))


SHAPES = [(1, 3, 8, 8), (4, 1, 8, 8), (2, 3, 5, 9), (2, 4, 6, 6), (3, 3, 1, 1), (2, 2, 1, 7)]


@pytest.mark.parametrize("shape", SHAPES)
def test_any_image_gets_a_view_of_its_own_shape(shape):
    inputs = images(*shape)
    before = inputs.clone()

    view = augment(inputs, random())

    assert view.shape == inputs.shape
    assert view.dtype == inputs.dtype
    assert bool(view.isfinite().all())
    assert not torch.equal(view, inputs)
    assert torch.equal(inputs, before)


def test_equal_generators_give_equal_views_and_one_generator_gives_others():
    inputs, draws = images(2, 3, 8, 8), random()

    first, second = augment(inputs, draws), augment(inputs, draws)

    assert torch.equal(first, augment(inputs, random()))
    assert not torch.equal(first, second)


def test_samples_of_a_batch_are_changed_differently():
    one = images(1, 3, 8, 8)

    views = augment(one.repeat(2, 1, 1, 1), random())

    assert (views[0] - views[1]).abs().max() > 0.1


def test_vectors_get_noise_measured_in_their_spread():
    inputs = 1000 + 50 * images(2000, 5)

    change = augment(inputs, random()) - inputs

    assert change.std() == pytest.approx(NOISE * 50, rel=0.05)
    assert abs(float(change.mean())) < 0.1


@pytest.mark.parametrize("inputs", [torch.arange(6).reshape(2, 3), torch.zeros(0, 3, 8, 8)])
def test_what_has_no_real_numbers_stays_as_it_is(inputs):
    assert torch.equal(augment(inputs, random()), inputs)


def test_nothing_is_cut_off_at_zero_and_one():
    inputs = 10 * images(4, 3, 8, 8)

    view = augment(inputs, random())

    assert view.min() < -5
    assert view.max() > 5


def test_views_follow_the_scale_of_the_inputs():
    inputs = images(4, 3, 8, 8)

    assert torch.allclose(augment(7 * inputs, random()), 7 * augment(inputs, random()), atol=1e-4)


def test_colours_keep_their_distance_from_grey_up_to_contrast_and_saturation():
    colours = images(50, 3, 4, 4)

    changed = jitter_colours(colours, random(), spread=torch.tensor(1.0))

    # A turn of the hue keeps lengths, so per image all distances from grey grow by one factor,
    # (1 ± 0.3)·(1 ± 0.5).
    def from_grey(given):
        return (given - given.mean(dim=1, keepdim=True)).norm(dim=1).flatten(1)

    factors = from_grey(changed) / from_grey(colours)
    assert torch.allclose(factors, factors[:, :1].expand_as(factors), rtol=1e-3)
    assert 0.7 * 0.5 - 1e-3 <= factors.min() < 0.8
    assert 1.2 < factors.max() <= 1.3 * 1.5 + 1e-3


@pytest.mark.parametrize(("mirror", "least", "most"), [(True, 70, 130), (False, 0, 0)])
def test_about_half_of_the_images_are_mirrored_or_none(mirror, least, most):
    left_dark = torch.linspace(-1, 1, 16).expand(200, 1, 16, 16)

    moved = move(left_dark, random(), mirror=mirror)

    slope = moved[..., 12].mean(dim=(1, 2)) - moved[..., 3].mean(dim=(1, 2))
    assert least <= int((slope < 0).sum()) <= most
    assert slope.abs().min() > 0.5


@pytest.mark.parametrize("shape", [(8, 1, 33, 33), (8, 1, 33, 65)])
def test_a_circle_stays_a_circle_of_nearly_the_same_size(shape):
    down = torch.arange(shape[2])[:, None] - shape[2] // 2
    across = torch.arange(shape[3])[None] - shape[3] // 2
    circle = ((down**2 + across**2) < 100).float().expand(shape)

    moved = move(circle, random())

    # As wide as high, whatever the sides of the image: second moments in both directions agree.
    mass = moved.sum(dim=(1, 2, 3))
    assert bool(((mass / circle[0].sum()) > 0.9**2 - 0.05).all())
    assert bool(((mass / circle[0].sum()) < 1.1**2 + 0.05).all())
    rows, columns = moved.sum(dim=(1, 3)), moved.sum(dim=(1, 2))
    for row, column in zip(rows, columns, strict=True):
        assert spread_of(row) == pytest.approx(spread_of(column), rel=0.03)


def spread_of(masses):
    places = torch.arange(len(masses)).float()
    mean = (masses * places).sum() / masses.sum()
    return math.sqrt((masses * (places - mean) ** 2).sum() / masses.sum())


def test_blur_spreads_a_point_evenly_and_loses_nothing():
    point = torch.zeros(20, 1, 9, 9)
    point[:, 0, 4, 4] = 1

    blurred = blur(point, random())

    assert torch.allclose(blurred.sum(dim=(1, 2, 3)), torch.ones(20))
    assert torch.allclose(blurred, blurred.transpose(2, 3), atol=1e-6)
    assert torch.allclose(blurred, blurred.flip(3), atol=1e-6)
    assert blurred[:, 0, 4, 4].min() < 0.8


def test_shuffled_patches_keep_their_values_and_lose_their_place():
    images = torch.arange(2 * 3 * 8 * 8, dtype=torch.float32).view(2, 3, 8, 8)
    given = shuffle_patches(images, torch.Generator().manual_seed(0), patches=2)

    assert torch.equal(given.flatten(1).sort().values, images.flatten(1))
    quarters = [images[0, :, top : top + 4, left : left + 4] for top in (0, 4) for left in (0, 4)]
    assert any(torch.equal(given[0, :, :4, :4], quarter) for quarter in quarters)
    assert not torch.equal(given, images)


def test_images_that_the_grid_does_not_divide_keep_their_size():
    given = shuffle_patches(torch.ones(2, 1, 7, 9), torch.Generator().manual_seed(0))

    assert given.shape == (2, 1, 7, 9)
    assert torch.allclose(given, torch.ones(2, 1, 7, 9))


def test_of_vectors_the_values_are_shuffled():
    vectors = torch.arange(10.0).repeat(3, 1)
    given = shuffle_patches(vectors, torch.Generator().manual_seed(0))

    assert torch.equal(given.sort().values, vectors)
    assert len({tuple(row) for row in given.tolist()}) == 3
