"""A disk that is really full, and a folder that is really read-only."""

import pytest
from small_disk import SmallDisk

from attakit.service.web.storage_watch import StorageWatch


def mount_or_skip(folder):
    try:
        return SmallDisk.mount(folder, megabytes=4)
    except OSError as error:
        pytest.skip(f"only root can mount a disk of the test's own: {error}")


@pytest.fixture
def disk(tmp_path):
    """Folder and database of the service are on it."""
    disk = mount_or_skip(tmp_path)
    yield disk
    disk.close()


@pytest.fixture
def service(disk, start):
    return start()


@pytest.fixture
def watch(service):
    settings = service.state.settings
    return StorageWatch(service.storage, settings.folder, service.state.health, service.clock)


def number(service, name):
    lines = service.client.get("/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(name + " "))


def alarms(service):
    status = service.client.get("/v1/status").json()
    return [one["text"] for one in status["alarms"] if one["what"] == "storage"]


def test_on_a_full_disk_predictions_continue_and_nothing_is_lost(disk, service, watch, picture):
    (question,) = service.ask()
    before = service.storage.samples.count()
    files = [("files", ("a.png", picture(size=64, seed=n), "image/png")) for n in range(20)]

    with disk.full():
        answered = service.client.post("/v1/predict", files=files)
        service.state.writer.flush(0.5)
        watch.run_once()
        ready = service.client.get("/readyz")
        told = alarms(service)
        waiting = number(service, "attakit_samples_waiting")
        failures = number(service, 'attakit_storage_failures_total{what="folder"}')
        body = {"key": "k", "label": 1, "comment": "x" * 1000}
        refused = service.client.post(f"/v1/questions/{question}/answer", json=body)

    assert answered.status_code == 200
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert any("No space left on device" in text for text in ready.json()["problems"])
    assert told == ready.json()["problems"]
    assert (waiting, failures) == (20, 1)
    assert refused.status_code == 503

    assert service.state.writer.flush(60)
    watch.run_once()
    assert service.client.get("/readyz").json()["status"] == "ok"
    assert service.storage.samples.count() == before + 20
    taken = service.client.post(f"/v1/questions/{question}/answer", json=body)
    assert taken.json() == {"outcome": "accepted"}


def test_a_read_only_folder_is_reported_until_it_can_be_written(live, tmp_path_factory, picture):
    folder = tmp_path_factory.mktemp("disk")
    disk = mount_or_skip(folder)  # the database is elsewhere, as PostgreSQL is
    watch = StorageWatch(live.storage, folder, live.state.health, live.clock)
    png = {"files": ("a.png", picture(), "image/png")}

    with disk.read_only():
        watch.run_once()
        answered = live.client.post("/v1/predict", files=png)
        ready, told = live.client.get("/readyz").json(), alarms(live)
        faults = number(live, "attakit_storage_faults")
    watch.run_once()
    disk.close()

    assert answered.status_code == 200
    assert "Read-only file system" in ready["problems"][0]
    assert told == ready["problems"]
    assert faults == 1
    assert live.client.get("/readyz").json()["status"] == "ok"
