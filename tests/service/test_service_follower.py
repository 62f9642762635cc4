import pytest

from attakit.errors import ModelError
from attakit.nn import Classifier
from attakit.service.follower import Follower
from attakit.service.predictor import Predictor
from attakit.service.storage import open_storage
from attakit.service.storage.rows import Version
from attakit.testing import tiny_classifier


@pytest.fixture
def storage(tmp_path):
    with open_storage(tmp_path) as opened:
        for number in range(3):
            opened.versions.add(Version(number, number - 1, f"{number}.safetensors", "", 0, 0.0))
        yield opened


@pytest.fixture
def predictor():
    with Predictor(None) as made:
        yield made


def test_the_promoted_version_answers(storage, predictor):
    loaded = []

    def load(version):
        loaded.append(version.file)
        return Classifier(tiny_classifier())

    follower = Follower(storage.versions, predictor, load)
    follower.sync()
    waits = predictor.ready
    storage.versions.promote(1, "It is better.", "learner")
    follower.sync()
    follower.sync()
    storage.versions.promote(0, "It was better.", "Ada")
    follower.sync()

    assert not waits
    assert loaded == ["1.safetensors", "0.safetensors"]
    assert predictor.version == 0


def test_a_version_that_cannot_be_read_leaves_the_one_that_answers(storage, predictor, caplog):
    tried = []

    def load(version):
        tried.append(version.number)
        if version.number == 2:
            raise ModelError("2.safetensors is damaged.")
        return Classifier(tiny_classifier())

    told = []
    follower = Follower(storage.versions, predictor, load, unreadable=told.append)
    for number in (1, 2):
        storage.versions.promote(number, "It is better.", "learner")
        follower.sync()
    follower.sync()

    assert predictor.version == 1
    assert tried == [1, 2]
    assert told == [2]
    assert "version 2 is promoted but cannot be used: 2.safetensors is damaged." in caplog.text


def test_without_a_model_yet_the_version_before_answers_for_one_that_cannot_be_read(
    storage, predictor
):
    def load(version):
        if version.number == 2:
            raise ModelError("2.safetensors is gone.")
        return Classifier(tiny_classifier())

    for number in (1, 2):
        storage.versions.promote(number, "It is better.", "learner")
    follower = Follower(storage.versions, predictor, load)
    follower.sync()
    follower.sync()

    assert predictor.version == 1
