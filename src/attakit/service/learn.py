"""Run a learner without a server: `attakit learn`."""

from __future__ import annotations

from collections.abc import Callable

from attakit.processes.interrupt import stoppable
from attakit.service.checks import check_model_fits, check_shareable
from attakit.service.inputs import Inputs
from attakit.service.learner.process import run_learner
from attakit.service.logs import logging_to
from attakit.service.models import source_model
from attakit.service.saved_settings import open_service, with_saved_method
from attakit.service.serve import prepare_files
from attakit.service.storage.storage import make_service_folder
from attakit.settings.service import ServiceSettings


def learn(settings: ServiceSettings, *, started: Callable[[], None] = lambda: None) -> None:
    """Learn for the servers of a deployment until Ctrl-C or SIGTERM.

    If another learner leads, this one waits, and takes over when that one ends or dies.

    Parameters
    ----------
    settings
        The service's settings, the same as those of its servers.
    started
        A callback for the moment when everything is checked and the learner starts or waits.
    """
    check_shareable(settings, "learn")
    settings = with_saved_method(settings)
    source = source_model(settings)
    check_model_fits(settings, source)
    make_service_folder(settings.folder)
    with open_service(settings) as storage:
        prepare_files(settings, storage, source)
    decode = Inputs(settings.input, pixels=settings.server.pixels).decode
    with logging_to(None), stoppable("Stopped.") as stop:
        started()
        run_learner(settings, source, decode, stop=stop)
