"""Everything that the service would start with is tried; nothing is changed, no source is contacted."""

from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from eccaht.plants import load_model
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.feeds import feed_of
from eccaht.service.runtime.plant import LivePlant
from eccaht.service.security.guard import check_host, is_any_valid
from eccaht.service.settings import PlantSettings, Settings
from eccaht.service.sources import make_feed, read_settings
from eccaht.service.store import Store
from eccaht.service.store.schema import VERSION, version_of
from eccaht.service.store.store import now


def faults(settings: Settings) -> Iterator[str]:
    """What is wrong with the store, the plants and sources of the settings, and where the service would listen."""
    store = Store(settings.store.url.get_secret_value(), settings.store.schema_name)
    sink = Runtime(store, settings)  # which is never started: sources are only looked at
    try:
        has_token, fault = _store(store)
        if fault:
            yield f"store {store.shown}: {fault}"
        for name, plant in settings.plants.items():
            yield from (f"plant {name}: {fault}" for fault in _plant(name, plant, sink))
        for name, secret in settings.sources.items():
            try:
                make_feed(name, read_settings(secret.get_secret_value(), name), sink.target, sink)
            except ValueError as error:
                yield str(error)
        if not fault:
            try:
                check_host(settings.listen.host, has_token=has_token, is_open=settings.security.open)
            except ValueError as error:
                yield f"listen: {error}"
    finally:
        store.close()


def _store(store: Store) -> tuple[bool, str]:
    """Whether the store has a valid token, and what is wrong with it."""
    if store.is_sqlite and not (file := Path(store.url.database or "")).is_file():
        return False, "" if file.parent.is_dir() else "no such directory"
    try:
        with store.read() as connection:
            found = version_of(connection)
            has_token = found == VERSION and is_any_valid(connection, now())
    except sa.exc.DBAPIError as error:
        return False, store.error_line(error)
    return has_token, "" if found in (0, VERSION) else f"version {found}, which this eccaht does not know"


def _plant(name: str, plant: PlantSettings, sink: Runtime) -> Iterator[str]:
    try:
        model = load_model(plant.model)
        LivePlant.session_for(model, "", plant)
    except (ValueError, OSError) as error:
        yield str(error)
        return
    for source, secret in plant.sources.items():
        try:
            feed_of(source, secret.get_secret_value(), name, model, sink)
        except (ValueError, OSError) as error:
            yield str(error)
