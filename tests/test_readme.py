"""The Python examples of README, quickstart and "Add a method" do what they say."""

import pytest
import torch
from torch import nn

from code_blocks import blocks_of, execute

TEXTS = ["README.md", "docs/quickstart.md", "docs/add-a-method.md"]


def readme_objects():
    """What the README calls "your model, your batches, your way to get a label".

    The other texts get nothing: their examples define all that they use.
    """
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randn(16, 3, 8, 8, generator=generator) for _ in range(4)]
    names = [f"sample-{number}" for number in range(64)]
    delivered = {}
    return {
        "torch": torch,
        "model": nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5)
        ),
        "batches": batches,
        "labels": {name: number % 5 for number, name in enumerate(names)},
        "deliver": lambda names, classes: delivered.update(zip(names, classes, strict=True)),
        "delivered": delivered,
    }


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _same_randomness_afterwards():
    with torch.random.fork_rng(devices=[]):
        yield


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_has_examples(text):
    assert blocks_of(text)


def test_the_readme_example_adapts_the_model_of_a_user(tmp_path):
    names = readme_objects()
    before = {name: tensor.clone() for name, tensor in names["model"].state_dict().items()}

    execute("README.md", names)

    adapted = torch.load(tmp_path / "adapted.pt", weights_only=False)
    untouched = names["model"].state_dict()
    assert len(names["delivered"]) == 64
    assert all(torch.equal(before[name], untouched[name]) for name in before)
    inputs = names["batches"][0]
    assert not torch.allclose(adapted(inputs), names["model"].eval()(inputs))


def test_the_readme_example_has_about_ten_lines():
    (block,) = blocks_of("README.md")

    assert len([line for line in block.splitlines() if line.strip()]) <= 10


def test_the_quickstart_shows_that_labels_help(capsys):
    names = execute("docs/quickstart.md", {"__name__": "quickstart"})

    assert names["after"] > names["before"]
    assert names["budget"].spent <= 40
    assert "without adapting" in capsys.readouterr().out


def test_the_example_method_passes_the_conformance_suite():
    names = execute("docs/add-a-method.md", {"__name__": "head_tuning"})

    assert "check_method" in names
