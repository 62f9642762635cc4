"""A service on a real Ray cluster of two nodes, of which one is killed under load."""

import os
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from attakit.client import Client
from attakit.errors import ServiceError, SettingError
from attakit.service.ray_serve import serve_on_ray
from attakit.service.storage import LabelRules, open_storage
from attakit.settings.load import load_service
from attakit.settings.service import ServiceSettings
from deployment import Deployment, leader, wait_for
from live_service import answer_some, points_of

LONGEST_OUTAGE = 15.0  # seconds, on a machine that may be busy


def test_a_service_on_sqlite_cannot_be_spread(tmp_path):
    settings = ServiceSettings(folder=tmp_path / "live", classes=("a", "b"))

    with pytest.raises(SettingError, match=r"serve --ray: servers and learners share"):
        serve_on_ray(settings)

    assert not settings.folder.exists()


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """A head, where the test runs, and one more node."""
    import ray  # noqa: PLC0415, takes seconds that only tests on a cluster should pay
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    source = Path(__file__).parents[2] / "src"
    monkeypatch.setenv("PYTHONPATH", f"{source}:{tmp_path}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("RAY_worker_niceness", "0")
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 4})
    ray.init(address=found.address, log_to_driver=False)
    yield found
    ray.shutdown()
    found.shutdown()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def actors_on(node):
    """Names of the actors that live on a node."""
    from ray.util.state import list_actors  # noqa: PLC0415, as above

    alive = list_actors(filters=[("state", "=", "ALIVE")])
    return sorted(actor.class_name for actor in alive if actor.node_id == node.node_id)


class Visitor:
    """Sends points and answers questions, and notes for how long it is refused."""

    def __init__(self, address):
        self.client = Client(address, annotator="Ada", pauses=())  # it tells every refusal
        self.accepted, self.seen, self.sent = [], set(), 0
        self.refused_since, self.longest_outage = None, 0.0

    def visit(self):
        self.sent += 1
        began = time.monotonic()
        try:
            self.client.predict(points_of(self.sent))
        except ServiceError:
            self.refused_since = self.refused_since or began
            return
        if self.refused_since is not None:
            outage = time.monotonic() - self.refused_since
            self.longest_outage = max(self.longest_outage, outage)
            self.refused_since = None
        with suppress(ServiceError):
            answer_some(self.client, self.accepted, self.seen)

    def visit_until(self, condition, seconds=240.0):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline
            self.visit()


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray itself
def test_a_node_and_the_learner_are_killed_under_load_and_nothing_accepted_is_lost(
    cluster, tmp_path, postgres_url, record_property
):
    deployment = Deployment(tmp_path, postgres_url, budget=60)
    port = free_port()
    overrides = [f"server.port={port}", "server.open=true", "ray.max_replicas=2"]
    settings = load_service(deployment.file, overrides)
    doomed = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    up, stop, rules = threading.Event(), threading.Event(), LabelRules(settle_seconds=0, classes=3)
    service = threading.Thread(
        target=serve_on_ray,
        args=(settings,),
        kwargs={"started": lambda _address, token: up.set(), "stop": stop},
    )
    with open_storage(tmp_path, postgres_url, labels=rules) as storage:
        service.start()
        assert up.wait(180)
        visitor = Visitor(f"http://127.0.0.1:{port}")
        visitor.visit_until(lambda: len(visitor.accepted) >= 5)
        lost = actors_on(doomed)
        cluster.remove_node(doomed, allow_graceful=False)
        turn, accepted = storage.turns.last(), len(visitor.accepted)
        visitor.visit_until(
            lambda: storage.turns.last() > turn + 1 and len(visitor.accepted) >= accepted + 5
        )
        killed, turn = leader(storage), storage.turns.last()
        os.kill(killed, signal.SIGKILL)
        visitor.visit_until(lambda: leader(storage) != killed and storage.turns.last() > turn)
        wait_for(lambda: not storage.questions.settled())
        visitor.client.close()
        stop.set()
        service.join(120)
        kept = {
            given.question: given.label
            for question in visitor.seen
            for given in storage.questions.answers(question)
            if not given.withdrawn
        }
        counts = storage.questions.counts()

    record_property("longest_outage", round(visitor.longest_outage, 1))
    record_property("lost", lost)
    assert any("ServeReplica" in name or "Learner" in name for name in lost)
    assert not service.is_alive()
    assert dict(visitor.accepted).items() <= kept.items()
    assert visitor.longest_outage < LONGEST_OUTAGE
    assert counts.answered + counts.open <= 60
