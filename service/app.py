"""The ASGI application: REST under /v1, the dashboard under /."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from anyio.to_thread import run_sync
from fastapi import FastAPI
from starlette.routing import Route

from db.store import Store
from kernel_gen.errors import Unavailable
from service.api import graphs, health, jobs, plans
from service.auth import Authenticator
from service.bundles import Bundler
from service.context import Context
from service.dashboard import install_dashboard
from service.document import describe
from service.guard import Guard, known_hosts
from service.metrics import Metrics
from service.models import ProblemView
from service.pictures import Pictures
from service.problems import install
from service.settings import Settings

log = logging.getLogger(__name__)
_SWEEP_SECONDS = 10.0
# Names the model of errors; `describe` says in which operations it occurs: in all of them.
_PROBLEM: dict[int | str, dict[str, Any]] = {"default": {"model": ProblemView}}


def create_app(settings: Settings) -> FastAPI:
    """An app on the store of `settings.db`, which is opened now and closed at shutdown.

    Raises InvalidInput, SchemaMismatch or Unavailable if the store cannot be opened.
    """
    store = Store(settings.db)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeper = asyncio.create_task(_sweep(store))
        yield
        sweeper.cancel()
        await asyncio.gather(sweeper, return_exceptions=True)
        store.close()

    app = FastAPI(
        title="graph-autofusion",
        version=version("graph-autofusion"),
        summary="Submit tensor programs for tuning, watch the search, look up plans",
        lifespan=lifespan,
        # Their pages load scripts from other hosts; /v1/openapi.json is served.
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        responses=_PROBLEM,
    )
    app.openapi = lru_cache(1)(lambda: describe(app))  # type: ignore[method-assign]
    context = _context(settings, store)
    app.state.context = context
    install(app)
    # The hot path skips FastAPI's handling of parameters; its router below describes it.
    app.router.routes.insert(0, Route("/v1/plans/lookup", plans.lookup, methods=["GET"]))
    routers = (plans.lookup_router, graphs.router, jobs.router, plans.router, health.router)
    for router in routers:
        app.include_router(router)
    install_dashboard(app)
    app.add_middleware(
        Guard,
        hosts=known_hosts(settings.host, settings.allowed_hosts),
        max_body_bytes=settings.max_body_bytes,
        metrics=context.metrics,
    )
    return app


async def _sweep(store: Store) -> None:
    """Notice jobs whose driver was lost even where no other driver is there to notice."""
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        try:
            await run_sync(store.queue.expire)
        except Unavailable as error:
            log.warning("jobs whose driver was lost cannot be queued again: %s", error)


def _context(settings: Settings, store: Store) -> Context:
    return Context(
        settings=settings,
        store=store,
        authenticator=Authenticator(store, loopback=settings.is_loopback),
        bundler=Bundler(settings.key_folder, settings.trust_folder),
        metrics=Metrics(),
        pictures=Pictures(store),
    )
