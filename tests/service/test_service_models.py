import pytest
import torch

from attakit.errors import ModelError, SettingError
from attakit.nn.classifier import Classifier
from attakit.nn.weights import save_weights, weights_hash
from attakit.service.blobs import FolderBlobs
from attakit.service.models import VERSIONS, live_method, source_model, version_model
from attakit.service.storage import Version
from attakit.settings.load import parse_service
from attakit.settings.service import LiveMethodTable
from attakit.testing import tiny_classifier

OWN = """
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))

def nothing():
    return "no model"

def needs(size):
    return nn.Linear(size, 3)

def fails():
    raise OSError("no such file: my.yaml")
"""


@pytest.fixture
def settings(tmp_path, monkeypatch):
    (tmp_path / "own_model_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)

    def make(name="own_model_of_a_test:build", **model):
        tables = {"folder": str(tmp_path / "live"), "classes": ["a", "b", "c"]}
        images = {"size": 28, "channels": 1}
        return parse_service({**tables, "model": {"name": name, **model}, "input": images})

    return make


def test_a_model_of_the_users_own_is_imported(settings):
    assert source_model(settings())(torch.zeros(4, 2)).logits.shape == (4, 3)


def test_a_named_model_gets_its_weights_and_channels(settings, tmp_path):
    made = source_model(settings())
    weights = tmp_path / "small.safetensors"
    with pytest.raises(SettingError, match=r"model\.weights is missing"):
        source_model(settings("small_cnn"))
    save_weights(made, weights)

    with pytest.raises(ModelError):
        source_model(settings("small_cnn", weights=str(weights)))


def test_a_version_has_the_weights_of_its_file(settings):
    tables = settings()
    first = source_model(tables)
    with torch.no_grad():
        first.model[0].weight.fill_(0.5)
    blobs = FolderBlobs(tables.folder / VERSIONS)
    save_weights(first, blobs.folder / "7.safetensors")
    version = Version(7, 6, "7.safetensors", weights_hash(first), 0, 0.0)

    assert torch.equal(
        version_model(tables, blobs, version).model[0].weight, torch.full((8, 2), 0.5)
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_model_of_a_test:missing", "cannot be imported"),
        ("no_such_module:build", "cannot be imported"),
        ("own_model_of_a_test:nothing", "must return a torch.nn.Module, got str"),
        ("own_model_of_a_test:needs", "without arguments, but it needs some .*'size'"),
        ("own_model_of_a_test:fails", "OSError: no such file: my.yaml"),
    ],
)
def test_what_is_no_model_is_refused(settings, name, message):
    with pytest.raises((SettingError, ModelError), match=message):
        source_model(settings(name))


@pytest.mark.parametrize(("given", "lasting"), [({}, True), ({"lasting_styles": False}, False)])
def test_a_method_has_its_own_defaults_in_a_service(settings, given, lasting):
    tables = settings().model_copy(update={"method": LiveMethodTable(**given)})

    method = live_method(tables, Classifier(tiny_classifier()))

    assert method.styles.lasting == lasting
    assert tables.method.settings == given
