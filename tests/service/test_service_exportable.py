"""An exported version, in programs that know nothing of attakit, answers as the service does."""

import importlib
import io
from contextlib import contextmanager

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

from attakit.methods import AnchorHead
from attakit.nn import SmallCNN, seeded
from attakit.nn.export import export_model
from attakit.nn.weights import load_weights, save_weights
from attakit.queries import Allowance, Answer
from attakit.records import Batch
from attakit.service import serve as serving
from attakit.service.blobs import FolderBlobs
from attakit.service.checks import check_compatible
from attakit.service.exportable import service_model
from attakit.service.learner.candidates import VersionFiles
from attakit.service.models import VERSIONS, source_model
from attakit.service.saved_settings import open_service, save_settings
from attakit.service.storage import Turn
from attakit.settings.load import parse_service

OWN = """
from torch import nn

def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
"""


@contextmanager
def talking_to(settings):
    """A client of a service whose learner never starts."""
    with (
        open_service(settings) as storage,
        serving.running_service(settings, storage, source_model(settings)) as app,
        TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50_000)) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def no_learner(monkeypatch):
    monkeypatch.setattr(serving.Supervisor, "start", lambda _self: None)
    monkeypatch.setattr(serving.Supervisor, "stop", lambda _self: None)


@pytest.fixture
def images(tmp_path):
    """Settings of a service for grey images of 24 × 24 pixels."""
    with seeded(3, "exported model"):
        save_weights(SmallCNN(classes=3), tmp_path / "source.safetensors")
    return parse_service(
        {
            "folder": str(tmp_path / "live"),
            "classes": ["cat", "dog", "cow"],
            "model": {"name": "small_cnn", "weights": str(tmp_path / "source.safetensors")},
            "input": {"size": 24, "channels": 1, "mean": [0.3], "std": [0.2]},
            "server": {"open": True},
        }
    )


def run_torchscript(path, inputs):
    with pytest.warns(DeprecationWarning, match=r"torch\.jit\.load"):
        return torch.jit.load(path)(inputs)


def run_program(path, inputs):
    return torch.export.load(path).module()(inputs)


def run_onnx(path, inputs):
    importlib.import_module("onnx.checker").check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path))
    return torch.from_numpy(session.run(["logits"], {"input": inputs.numpy()})[0])


def run_weights(path, inputs):
    model = SmallCNN(classes=3).eval()
    load_weights(model, path)
    return model(inputs)


RUNNERS = {
    "model.ts": run_torchscript,
    "model.pt2": run_program,
    "model.onnx": run_onnx,
    "model.safetensors": run_weights,
}


@pytest.mark.parametrize("name", RUNNERS)
def test_a_file_says_of_an_image_what_the_service_says(images, tmp_path, name):
    pixels = np.random.default_rng(0).integers(0, 256, (2, 24, 24), dtype=np.uint8)
    files = []
    for each in pixels:
        file = io.BytesIO()
        Image.fromarray(each).save(file, "PNG")
        files.append(("files", ("image.png", file.getvalue())))
    with talking_to(images) as client:
        answered = client.post("/v1/predict", files=files).json()["predictions"]

    model, facts = service_model(images.folder)
    exported = export_model(model, tmp_path / name, facts)
    inputs = (torch.from_numpy(pixels)[:, None] / 255 - facts.mean[0]) / facts.std[0]
    with torch.no_grad():
        probabilities = RUNNERS[name](exported.path, inputs).softmax(dim=1)

    wanted = [[each["probabilities"][one] for one in facts.classes] for each in answered]
    assert torch.allclose(probabilities, torch.tensor(wanted), atol=1e-4)
    assert inputs.shape[1:] == facts.shape


@pytest.fixture
def learned(images):
    """The model of a learner with labels, of which a version was saved and promoted."""
    source, folder = source_model(images), images.folder / VERSIONS
    method = AnchorHead(source)
    random = torch.Generator().manual_seed(0)
    batch = Batch(0, tuple(map(str, range(20))), torch.randn(20, 1, 24, 24, generator=random))
    step = method.step(batch, Allowance(10))
    method.learn([Answer(query, 1, "me") for query in step.queries])
    model = method.adapted_model
    with open_service(images) as storage:
        files = VersionFiles(FolderBlobs(folder), storage.versions, source)
        files.begin(0.0)
        version = files.write(model, files.name(model), Turn(0, batch.samples, 10), 10)
        storage.versions.promote(version.number, "It is good.", "a test")
        check_compatible(images, storage)
    save_settings(images)
    return model


@pytest.mark.parametrize("name", ["model.ts", "model.pt2", "model.onnx"])
def test_a_version_that_holds_only_a_head_is_exported_as_one_model(images, learned, tmp_path, name):
    (tmp_path / "source.safetensors").unlink()  # the folder of the service is enough

    model, facts = service_model(images.folder)
    exported = export_model(model, tmp_path / name, facts)

    inputs = torch.randn(3, 1, 24, 24, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(RUNNERS[name](exported.path, inputs), learned(inputs), atol=1e-4)
    assert exported.facts.norm == "stored"
    assert facts.origin == "version 1 of a service, after 10 labels"


def test_the_service_answers_with_a_version_that_holds_only_a_head(images, learned):
    pixels = np.random.default_rng(0).integers(0, 256, (24, 24), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    with talking_to(images) as client:
        files = [("files", ("image.png", file.getvalue()))]
        (answered,) = client.post("/v1/predict", files=files).json()["predictions"]

    inputs = (torch.from_numpy(pixels)[None, None] / 255 - 0.3) / 0.2
    with torch.no_grad():
        expected = learned(inputs).exp()[0].tolist()
    assert answered["version"] == 1
    assert list(answered["probabilities"].values()) == pytest.approx(expected, abs=1e-4)


def test_a_model_of_the_users_own_for_arrays_is_exported_too(tmp_path, monkeypatch):
    (tmp_path / "exported_model_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    settings = parse_service(
        {
            "folder": str(tmp_path / "live"),
            "classes": ["low", "high"],
            "model": {"name": "exported_model_of_a_test:build"},
            "input": {"kind": "array", "shape": [4]},
            "server": {"open": True},
        }
    )
    array = [0.1, -2.0, 3.5, 0.0]
    with talking_to(settings) as client:
        (answered,) = client.post("/v1/predict", json={"arrays": [array]}).json()["predictions"]

    model, facts = service_model(settings.folder)
    exported = export_model(model, tmp_path / "model.onnx", facts)

    probabilities = run_onnx(exported.path, torch.tensor([array])).softmax(dim=1)
    assert probabilities[0].tolist() == pytest.approx(
        [answered["probabilities"][name] for name in ("low", "high")], abs=1e-4
    )
    assert (facts.shape, facts.mean, facts.std) == ((4,), None, None)


def test_a_version_is_downloaded_from_the_running_service(images, tmp_path):
    inputs = torch.rand(2, 1, 24, 24)
    with talking_to(images) as client:
        response = client.get("/v1/versions/0/weights")
    file = tmp_path / "download.safetensors"
    file.write_bytes(response.content)

    assert response.headers["content-disposition"].endswith("filename=version-0.safetensors")
    model, _ = service_model(images.folder)
    torch.testing.assert_close(run_weights(file, inputs), model(inputs))
