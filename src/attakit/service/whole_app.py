"""An app that starts and stops everything it needs, for programs that run ASGI apps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from anyio import to_thread
from fastapi import FastAPI

from attakit.service.models import source_model
from attakit.service.saved_settings import open_service, with_saved_method
from attakit.service.serve import running_service
from attakit.service.storage.storage import make_service_folder
from attakit.settings.service import ServiceSettings


def whole_app(settings: ServiceSettings) -> FastAPI:
    """Build one server of a deployment, without a learner. Its lifespan stops what it started."""
    settings = with_saved_method(settings)
    make_service_folder(settings.folder)
    stack = ExitStack()
    try:
        storage = stack.enter_context(open_service(settings))
        service = running_service(settings, storage, source_model(settings), learner=False)
        app = stack.enter_context(service)
    except BaseException:
        stack.close()
        raise
    begun = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(inner: FastAPI) -> AsyncIterator[None]:
        async with begun(inner):
            yield
        await to_thread.run_sync(stack.close)

    app.router.lifespan_context = lifespan
    return app
