import pytest
import torch
from torch import nn

from attakit.errors import SettingError
from attakit.nn import Classifier, SmallCNN, available_devices, choose_device, place, prepare

CPU = torch.device("cpu")


@pytest.fixture
def machine(monkeypatch):
    """Pretend to be a machine with some cards, and an Apple chip or none."""

    def pretend(cards: int, apple: bool) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cards > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: apple)

    return pretend


@pytest.mark.parametrize(
    ("cards", "apple", "name", "chosen"),
    [
        (0, False, "auto", "cpu"),
        (0, True, "auto", "mps"),
        (2, True, "auto", "cuda:0"),
        (2, False, "cuda", "cuda:0"),
        (2, False, "cuda:1", "cuda:1"),
        (2, True, "cpu", "cpu"),
        (0, True, "mps", "mps"),
    ],
)
def test_a_device_is_chosen_from_what_is_there(machine, cards, apple, name, chosen):
    machine(cards, apple)
    assert choose_device(name) == torch.device(chosen)


@pytest.mark.parametrize(
    ("cards", "name", "there"),
    [(0, "cuda", "cpu"), (0, "mps", "cpu"), (2, "cuda:2", "cuda:0, cuda:1, cpu")],
)
def test_an_absent_device_is_refused_with_those_that_are_there(machine, cards, name, there):
    machine(cards, apple=False)
    message = f"device '{name}' is not available here. Available: {there}."
    with pytest.raises(SettingError, match=message):
        choose_device(name)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CPU", "", None, 0])
def test_an_unknown_device_is_refused(name):
    with pytest.raises(SettingError, match="device must be auto, cpu, cuda, cuda:N or mps, got"):
        choose_device(name)


def test_the_processor_is_always_there(machine):
    machine(1, apple=True)
    assert available_devices() == ["cuda:0", "mps", "cpu"]


def test_images_are_placed_channels_last_with_the_same_values():
    images = torch.arange(96.0).reshape(2, 3, 4, 4)
    placed = place(images, CPU)
    assert placed.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(placed, images)
    assert images.is_contiguous()


def test_placing_twice_copies_nothing():
    placed = place(torch.zeros(2, 3, 4, 4), CPU)
    assert place(placed, CPU) is placed


@pytest.mark.parametrize(
    "inputs", [torch.zeros(2, 3), torch.zeros(2, 3, 4), torch.zeros(2, 3, 4, 4, dtype=torch.long)]
)
def test_what_is_no_image_keeps_its_layout(inputs):
    assert place(inputs, CPU) is inputs


def test_a_prepared_model_is_the_same_model_channels_last():
    model = SmallCNN().eval()
    images = torch.linspace(0, 1, 2 * 28 * 28).reshape(2, 1, 28, 28)
    expected = model(images)
    weight = model.block2[0].weight
    assert prepare(model, CPU) is model
    assert model.block2[0].weight is weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(model(place(images, CPU)), expected)


def test_a_prepared_classifier_keeps_images_channels_last():
    seen = []
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2))
    model[0].register_forward_hook(lambda layer, inputs, output: seen.append(output))
    prepare(Classifier(model), CPU)(place(torch.ones(2, 3, 4, 4), CPU))
    assert seen[0].is_contiguous(memory_format=torch.channels_last)


def test_a_model_of_volumes_is_prepared_too():
    model = nn.Sequential(nn.Conv3d(1, 2, 3), nn.Flatten(), nn.Linear(2, 3))
    before = model[0].weight.clone()

    prepare(model, torch.device("cpu"))

    assert torch.equal(model[0].weight, before)
    assert model(torch.zeros(2, 1, 3, 3, 3)).shape == (2, 3)
