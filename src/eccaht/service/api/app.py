"""The app: its routes as lists, what is started with it, and what errors become."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.requests import ClientDisconnect

from eccaht.service.alerts.sender import make_sender
from eccaht.service.api import files, health, past, plants, retrain, shapes
from eccaht.service.api.forwarding import forwarded, make_client
from eccaht.service.api.readers import Readers
from eccaht.service.rows import Busy
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.feeds import Feeds
from eccaht.service.runtime.owners import Elsewhere
from eccaht.service.runtime.retraining import Retrainings
from eccaht.service.security import login
from eccaht.service.settings import Settings
from eccaht.service.sources.parsing import TooLarge
from eccaht.service.store import Store
from eccaht.service.store.store import FROM_SETTINGS, notes_of, write_note
from eccaht.version import __version__

_LOG = logging.getLogger("eccaht.service")
_ROUTERS = (
    plants.router,
    plants.rows_router,
    past.router,
    retrain.router,
    plants.stream_router,
    health.router,
)
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": shapes.ProblemShape} for code in (400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
}


def make_app(settings: Settings) -> FastAPI:
    store = Store(settings.store.url.get_secret_value(), settings.store.schema_name)
    store.prepare()
    sender = make_sender(settings.alerts, store)
    engine = Runtime(store, settings, outgoing=sender.rows)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        await engine.start()
        await _put_plants(engine, settings)
        await app.state.retrainings.start_up()
        app.state.feeds = Feeds(engine)
        await app.state.feeds.start()
        sender.start()
        app.state.others, app.state.readers = make_client(), Readers()
        simulation = asyncio.create_task(_simulation(engine)) if settings.demo else None
        try:
            yield
        finally:
            if simulation is not None:
                simulation.cancel()
                await asyncio.gather(simulation, return_exceptions=True)
            await app.state.retrainings.stop()
            await app.state.feeds.stop()
            await app.state.others.aclose()
            app.state.readers.stop()
            await engine.stop()
            await sender.stop()
            store.close()

    app = FastAPI(
        title="eccaht",
        version=__version__,
        lifespan=running,
        responses=_PROBLEMS,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would be to whatever host the caller named
    )
    app.state.engine, app.state.settings, app.state.store = engine, settings, store
    app.state.probe = health.Probe(store)
    app.state.retrainings = Retrainings(engine)
    limits = settings.limits
    login.install(app, settings.security, store, body=limits.body, model=limits.model)
    for router in _ROUTERS:
        app.include_router(router)
    files.install(app)
    _add_errors(app)
    return app


async def _simulation(engine: Runtime) -> None:
    demo = await asyncio.to_thread(import_module, "eccaht.service.demo")  # what it needs takes seconds to import
    await demo.run(engine)


async def _put_plants(engine: Runtime, settings: Settings) -> None:
    """Make the plants of the settings, or change those that differ from them.

    A model file that has not changed since it was taken is not taken again: a model that the plant was given
    meanwhile, as by retraining, stays.
    """
    digests: dict[bytes, str] = {}  # many plants may share a model, whose check takes a while
    taken = await asyncio.to_thread(_taken, engine)
    for name, plant in settings.plants.items():
        content = plant.model.read_bytes()
        if content not in digests:
            digests[content], _ = await engine.add_model(content, plant.model.name, "settings")
        known, digest = engine.views().get(name), digests[content]
        if known is not None and taken.get(name) == digest:
            digest = known.model_digest
        if known is None or known.model_digest != digest or known.options != plant.options():
            await engine.put_plant(name, digest, plant.options(), "settings", by_force=True)
        if taken.get(name) != digests[content]:
            await asyncio.to_thread(_take, engine, name, digests[content])


def _taken(engine: Runtime) -> dict[str, str]:
    """The digest of the model file that was last taken from the settings, by plant."""
    with engine.store.read() as connection:
        return notes_of(connection, FROM_SETTINGS)


def _take(engine: Runtime, plant: str, digest: str) -> None:
    with engine.store.begin() as connection:
        write_note(connection, FROM_SETTINGS, plant, digest)


def _problem(code: int, detail: str, **headers: str) -> JSONResponse:
    """An error is one line under `detail`."""
    return JSONResponse({"detail": " ".join(detail.split())[:500]}, code, headers)


def _add_errors(app: FastAPI) -> None:
    codes: dict[type[Exception], int] = {LookupError: 404, TooLarge: 413, plants.WrongType: 415, ValueError: 400}
    for kind, code in codes.items():

        @app.exception_handler(kind)
        async def _refused(_: Request, error: Exception, code: int = code) -> Response:
            return _problem(code, str(error))

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _problem(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    @app.exception_handler(ClientDisconnect)
    async def _left(_: Request, error: ClientDisconnect) -> Response:  # noqa: ARG001
        return Response(status_code=400)  # which the client does not see: it left in the middle of its body

    @app.exception_handler(Elsewhere)
    async def _elsewhere(request: Request, error: Elsewhere) -> Response:
        return await forwarded(request, error) or _problem(409 if error.address else 503, str(error))

    @app.exception_handler(Busy)
    async def _busy(_: Request, error: Busy) -> Response:
        code = 503 if error.broken else 429
        return _problem(code, str(error), **{"Retry-After": str(math.ceil(error.after))})

    @app.exception_handler(sa.exc.OperationalError)
    async def _store(request: Request, error: sa.exc.OperationalError) -> Response:
        _LOG.error("store: %s", request.app.state.store.error_line(error))
        return _problem(503, "the store does not answer: try again", **{"Retry-After": "1"})
