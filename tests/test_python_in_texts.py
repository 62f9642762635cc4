"""Every Python example of the documentation runs, with what its page takes for granted."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from attakit.methods import AnchorHead
from attakit.nn import ModelFacts, SmallCNN, export_model
from attakit.service.saved_settings import save_settings
from attakit.service.storage import Question, ServedSample, open_storage
from attakit.settings.service import ServiceSettings
from code_blocks import ROOT, TEXTS, execute, python_blocks
from live_site import open_site

OWN_TESTS = {"README.md", "docs/quickstart.md", "docs/add-a-method.md"}  # in test_readme.py
FRONT, HEAD, DATA = "docs/index.md", "docs/anchor-head.md", "docs/data-sets.md"
EXPERIMENTS = "docs/experiments.md"
EXPORT, SERVING = "docs/export.md", "docs/serving.md"
TEAM = "docs/tutorials/label-with-your-team.md"
ADDRESS = "http://localhost:8000"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng(devices=[]):
        yield


@pytest.fixture
def model():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def test_the_front_page_adapts_a_model(model):
    delivered = {}
    batches = [torch.randn(10, 4) for _ in range(3)]

    names = execute(
        FRONT,
        {
            "model": model,
            "batches": batches,
            "ask": lambda name, row: 0,
            "deliver": lambda names, classes: delivered.update(zip(names, classes, strict=True)),
        },
    )

    assert len(delivered) == 30
    assert names["method"].adapted_model(batches[0]).shape == (10, 3)


def test_the_anchor_head_takes_any_model(model):
    method = execute(HEAD, {"model": model})["method"]

    assert method.predict(torch.zeros(2, 4)).logits.shape == (2, 3)


def test_a_source_card_is_made_from_any_sample_of_source_data():
    source_inputs = torch.rand(30, 1, 28, 28)

    execute(EXPERIMENTS, {"model": SmallCNN(), "source_inputs": source_inputs})

    method = AnchorHead(SmallCNN(), source_card="photo.card.safetensors")
    assert method.predict(source_inputs).logits.shape == (30, 10)


def test_cifar_is_saved_as_attakit_reads_it(tmp_path, monkeypatch):
    class Downloaded:
        """torchvision's data set, without the download."""

        def __init__(self, root, train, download):
            self.data = np.zeros((20, 32, 32, 3), dtype=np.uint8)
            self.targets = list(range(10)) * 2

    folder = tmp_path / "data/CIFAR-10-C"
    folder.mkdir(parents=True)
    datasets = SimpleNamespace(CIFAR10=Downloaded)
    monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace(datasets=datasets))
    monkeypatch.setitem(sys.modules, "torchvision.datasets", datasets)

    execute(DATA, {})

    assert np.load(folder / "clean.npy").shape == (20, 32, 32, 3)
    assert np.load(folder / "clean_labels.npy").tolist() == list(range(10)) * 2


def test_facts_are_read_and_questions_exchanged(tmp_path, capsys):
    facts = ModelFacts("small_cnn", ("cat", "dog"), (1, 24, 24), origin="a test")
    export_model(SmallCNN(classes=2), tmp_path / "model.onnx", facts)
    service = ServiceSettings(folder=tmp_path / "service", classes=("cat", "dog"))
    save_settings(service)
    with open_storage(service.folder) as storage:
        storage.samples.add([ServedSample("a", None, 0, 0, 0.5, 0.5, 1.0)])
        storage.questions.put([Question(0, "a", 0, "learn", 0, 0.5, ((1, 0.9),), 1.0)])

    names = execute(EXPORT, {})

    assert capsys.readouterr().out.startswith("('cat', 'dog')\n")
    assert names["report"].blank == 1  # the question came back without an answer


@pytest.fixture
def site(tmp_path):
    for name in ("dog", "dusk-0001", "dusk-0002"):
        Image.new("RGB", (8, 8), "brown").save(f"{name}.jpg")
    with open_site(tmp_path / "live") as running:
        yield running


@pytest.mark.parametrize(
    ("page", "lines", "replaced"), [(SERVING, 1, {}), (TEAM, 2, {'"atk_…"': "None"})]
)
def test_the_client_gets_an_answer_for_every_picture(page, lines, replaced, site, capsys):
    execute(page, {}, **{ADDRESS: site.address}, **replaced)

    assert len(capsys.readouterr().out.splitlines()) == lines


def test_no_example_is_left_out():
    shown = {
        str(text.relative_to(ROOT))
        for text in TEXTS
        if python_blocks(text.read_text(encoding="utf-8"))
    }

    assert shown == OWN_TESTS | {FRONT, HEAD, DATA, EXPERIMENTS, EXPORT, SERVING, TEAM}
