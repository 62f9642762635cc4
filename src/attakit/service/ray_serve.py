"""`attakit serve --ray`: the same app as replicas of Ray Serve, and the learner as an actor."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

from fastapi import FastAPI

from attakit.processes.interrupt import stoppable
from attakit.processes.ray_cluster import connect, import_ray
from attakit.service.checks import check_model_fits, check_open, check_shareable, make_first_token
from attakit.service.inputs import Inputs
from attakit.service.models import source_model
from attakit.service.saved_settings import open_service, with_saved_method
from attakit.service.serve import Started, ignore, prepare_files
from attakit.service.storage.storage import make_service_folder
from attakit.service.supervisor import GAVE_UP, PATIENCE
from attakit.service.whole_app import whole_app
from attakit.settings.service import ServiceSettings

log = logging.getLogger(__name__)

NAME = "attakit"
_HEALTH_SECONDS = 2.0  # a replica whose node is gone is replaced soon
_POLL_SECONDS = 0.5


def serve_on_ray(
    settings: ServiceSettings,
    *,
    address: str | None = None,
    learner: bool = True,
    started: Started = ignore,
    stop: threading.Event | None = None,
) -> None:
    """Run a service on a Ray cluster until Ctrl-C or SIGTERM.

    Every node needs attakit and the weights file, but no shared folder.

    Parameters
    ----------
    settings
        The service's settings. Its database must be PostgreSQL, and `files` must name a place that
        all nodes reach.
    address
        The address of the cluster. With None, Ray finds one or starts one.
    learner
        If true, the cluster runs the learner too.
    started
        A callback for the moment when the service answers requests, as in `serve`.
    stop
        An event that ends the service, for programs without signals.
    """
    check_shareable(settings, "serve --ray")
    serve = import_ray("ray.serve")
    ray = import_ray()
    settings, token = _prepared(settings)
    ours = not ray.is_initialized()
    if ours:
        connect(ray, address)
    host, port = settings.server.host, settings.server.port
    serve.start(proxy_location="EveryNode", http_options={"host": host, "port": port})
    actor = _start_learner(ray, settings) if learner else None
    try:
        serve.run(_deployment(serve, settings).bind(), name=NAME, route_prefix="/")
        with stoppable("Stopped.") as asked:
            started(f"http://{host}:{port}", token=token)
            while not (asked.is_set() or (stop is not None and stop.is_set())):
                asked.wait(_POLL_SECONDS)
    finally:
        serve.delete(NAME)
        if actor is not None:
            ray.get(actor.stop.remote(), timeout=PATIENCE)
            ray.kill(actor)
        if ours:
            ray.shutdown()


def _prepared(settings: ServiceSettings) -> tuple[ServiceSettings, str | None]:
    """Check everything here, so that the person who started the service sees the error.

    Return the settings, and a new administrator token if there was none yet.
    """
    check_open(settings.server)
    settings = with_saved_method(settings)
    source = source_model(settings)
    check_model_fits(settings, source)
    make_service_folder(settings.folder)
    with open_service(settings) as storage:
        prepare_files(settings, storage, source)
        return settings, make_first_token(settings, storage)


def _deployment(serve: Any, settings: ServiceSettings) -> Any:
    """Return the app as a deployment with as many replicas as the requests need."""
    table = settings.ray

    def build() -> FastAPI:  # in each replica
        return whole_app(settings)

    return serve.deployment(
        serve.ingress(build)(),
        name=NAME,
        autoscaling_config={
            "min_replicas": min(table.min_replicas, table.max_replicas),
            "max_replicas": table.max_replicas,
            "target_ongoing_requests": table.requests_per_replica,
        },
        # More requests wait in the proxy. The replica refuses what it cannot hold.
        max_ongoing_requests=4 * table.requests_per_replica,
        ray_actor_options={"num_cpus": settings.server.threads},
        health_check_period_s=_HEALTH_SECONDS,
        health_check_timeout_s=10 * _HEALTH_SECONDS,
    )


class LearnerActor:
    """The learner in an actor. If its node dies, Ray restarts it on another one."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._learn, args=(settings,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the learner after the current turn."""
        self._stop.set()
        self._thread.join()

    def is_alive(self) -> bool:
        """True if the learner works, or waits for the one that leads."""
        return self._thread.is_alive()

    def _learn(self, settings: ServiceSettings) -> None:
        # Imported here: drift detection takes seconds, and only this process needs it.
        from attakit.service.learner.process import run_learner  # noqa: PLC0415

        try:
            make_service_folder(settings.folder)
            decode = Inputs(settings.input, pixels=settings.server.pixels).decode
            run_learner(settings, source_model(settings), decode, stop=self._stop)
        except SystemExit as ended:
            if ended.code != GAVE_UP:
                os._exit(1)
        except BaseException:
            log.exception("the learner failed")
            os._exit(1)  # so that Ray starts the actor again


def _start_learner(ray: Any, settings: ServiceSettings) -> Any:
    kind = ray.remote(max_restarts=-1, num_cpus=settings.learning.threads)(LearnerActor)
    return kind.options(name=f"{NAME} learner").remote(settings)
