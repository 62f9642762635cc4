"""A storage that fails: predictions continue, and the operator learns of it."""

import errno
import shutil

import pytest

from attakit.errors import StateError
from attakit.service.web.health import Health
from attakit.service.web.storage_watch import StorageWatch


@pytest.fixture
def watch(live):
    """Looks at the storage when told."""
    return StorageWatch(live.storage, live.state.settings.folder, live.state.health, live.clock)


def reported(live):
    """What each place says: /readyz, alarms of the storage in the status, faults in /metrics."""
    ready = live.client.get("/readyz")
    assert ready.status_code == 200
    alarms = live.client.get("/v1/status").json()["alarms"]
    return ready.json(), [one["text"] for one in alarms if one["what"] == "storage"]


def number(live, name):
    lines = live.client.get("/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(name + " "))


def test_a_storage_that_works_is_ready(live, watch):
    watch.run_once()

    assert reported(live) == ({"status": "ok", "problems": []}, [])
    assert number(live, "attakit_storage_faults") == 0


def test_samples_that_cannot_be_written_are_counted_and_reported(live, picture, monkeypatch):
    add = live.storage.samples.add

    def fail(_batch):
        raise StateError("no space left")

    monkeypatch.setattr(live.storage.samples, "add", fail)
    png = {"files": ("a.png", picture(), "image/png")}
    assert live.client.post("/v1/predict", files=png).status_code == 200
    live.state.writer.flush(0.5)

    ready, alarms = reported(live)
    assert ready["status"] == "degraded"
    assert "Samples cannot be stored and wait in memory" in ready["problems"][0]
    assert alarms == ready["problems"]
    assert number(live, "attakit_samples_waiting") == 1
    assert number(live, 'attakit_storage_failures_total{what="samples"}') >= 1

    monkeypatch.setattr(live.storage.samples, "add", add)
    assert live.state.writer.flush()
    assert live.client.get("/readyz").json()["status"] == "ok"
    assert live.storage.samples.count() == 1


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_folder_that_cannot_be_written_is_reported_until_it_can(live, watch, monkeypatch, code):
    def fail():
        raise OSError(code, "it is full")

    with monkeypatch.context() as patched:
        patched.setattr(watch, "_write_file", fail)
        watch.run_once()
        ready, alarms = reported(live)
    watch.run_once()
    live.state.overview.changed()

    assert "it is full. Predictions continue" in ready["problems"][0]
    assert alarms == ready["problems"]
    after, alarms = reported(live)
    assert after["status"] == "ok"
    assert alarms[0].startswith("Fixed after 0 s: The folder of the service")


def test_a_database_that_was_moved_away_takes_nothing_until_it_is_back(live, watch, tmp_path):
    file, (question,) = tmp_path / "0" / "service.sqlite", live.ask()
    file.rename(tmp_path / "moved.sqlite")
    watch.run_once()
    body = {"key": "k", "label": 1}

    refused = live.client.post(f"/v1/questions/{question}/answer", json=body)
    ready, _ = reported(live)
    shutil.move(tmp_path / "moved.sqlite", file)
    watch.run_once()
    taken = live.client.post(f"/v1/questions/{question}/answer", json=body)

    assert refused.status_code == 503
    assert ready["problems"][0].startswith("The database is not writable")
    assert taken.status_code == 200
    assert live.client.get("/readyz").json()["status"] == "ok"


def test_a_locked_database_is_reported_while_it_is_asked():
    seconds = iter(range(0, 1000, 4))
    health = Health(ticks=lambda: float(next(seconds)))

    health.ask()
    while_asked = health.problems()
    health.answered()

    assert "has not answered for a few seconds" in while_asked[0]
    assert health.problems() == []


def test_the_status_is_the_last_one_while_the_database_cannot_be_read(live, watch, monkeypatch):
    before = live.client.get("/v1/status").json()

    def fail(*_):
        raise StateError("away")

    monkeypatch.setattr(live.storage.versions, "current", fail)
    monkeypatch.setattr(live.storage.key_values, "set", fail)
    live.state.overview.changed()
    watch.run_once()
    status = live.client.get("/v1/status").json()

    assert status["version"] == before["version"]
    assert "The database is not writable" in status["alarms"][0]["text"]
    assert number(live, "attakit_storage_faults") == 1


def test_predictions_continue_when_a_change_comes_before_the_database_goes(
    live, picture, monkeypatch
):
    png = {"files": ("a.png", picture(), "image/png")}
    live.client.post("/v1/predict", files=png)

    def fail(*_):
        raise StateError("away")

    monkeypatch.setattr(live.storage.versions, "current", fail)
    live.state.overview.changed()  # somebody answered

    assert live.client.post("/v1/predict", files=png).status_code == 200
