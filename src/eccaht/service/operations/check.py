"""A look at everything that the service would start with; nothing is changed, no source is contacted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from eccaht.base.clock import show_duration
from eccaht.base.presentation.text import counted
from eccaht.plants import Model, load_model, parse_model
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.feeds import feed_of
from eccaht.service.runtime.plant import LivePlant
from eccaht.service.security import guard
from eccaht.service.security.guard import check_host
from eccaht.service.security.settings import SCOPES
from eccaht.service.settings import PlantOptions, PlantSettings, Settings
from eccaht.service.sources import make_feed, read_settings
from eccaht.service.store import Store, schema
from eccaht.service.store.schema import VERSION, version_of
from eccaht.service.store.store import now


class Line(NamedTuple):
    """What was looked at: good, or what is wrong with it."""

    good: bool
    text: str


def check(settings: Settings) -> Iterator[Line]:
    """One line for the store, each plant and source, each alert, and where the service would listen."""
    store = Store(settings.store.url.get_secret_value(), settings.store.schema_name)
    sink = Runtime(store, settings)  # which is never started: sources are only looked at
    try:
        made, line = _store(store)
        yield line
        for name, plant in settings.plants.items():
            yield from _plant(name, plant, sink)
        if made:
            yield from _known_plants(store, settings, sink)
        yield from _shared_sources(settings, sink)
        for channel in settings.alerts.channels():
            yield Line(True, f"alerts: {channel.name} ({type(channel).__name__.lower()})")
        if line.good:
            yield _listening(store, settings, made=made)
    finally:
        store.close()


def _store(store: Store) -> tuple[bool, Line]:
    """Whether the store has its tables, and the line to print about it."""
    shown = store.shown
    if store.is_sqlite and not (file := Path(store.url.database or "")).is_file():
        there = file.parent.is_dir()
        return False, Line(there, f"store {shown}: will be made" if there else f"store {shown}: no such directory")
    try:
        with store.read() as connection:
            found = version_of(connection)
    except sa.exc.DBAPIError as error:
        return False, Line(False, f"store {shown}: {store.error_line(error)}")
    if found == VERSION:
        return True, Line(True, f"store {shown}: version {found}")
    newer = found > VERSION
    text = f"version {found}, newer than this eccaht knows" if newer else "tables will be made, or brought up to date"
    return False, Line(not newer, f"store {shown}: {text}")


def _plant(name: str, plant: PlantSettings, sink: Runtime) -> Iterator[Line]:
    try:
        model = load_model(plant.model)
    except (ValueError, OSError) as error:
        yield Line(False, f"plant {name}: {error}")
        return
    yield from _watched(name, model, plant.options(), "", sink)


def _known_plants(store: Store, settings: Settings, sink: Runtime) -> Iterator[Line]:
    """Plants that came by the API: they are watched too."""
    plants, models = schema.plants, schema.models
    with store.read() as connection:
        joined = sa.select(plants.c.name, plants.c.options, models.c.content).join_from(plants, models)
        for row in connection.execute(joined.order_by(plants.c.name)):
            if row.name not in settings.plants:
                model = parse_model(row.content, f"the model of {row.name}")
                yield from _watched(row.name, model, PlantOptions(**row.options), " (of the store)", sink)


def _watched(name: str, model: Model, options: PlantOptions, where: str, sink: Runtime) -> Iterator[Line]:
    length = model.clock.length(model.seconds)
    try:
        LivePlant.session_for(model, "", options)
    except ValueError as error:
        yield Line(False, f"plant {name}{where}: {error}")
        return
    rate = options.false_alarms or "the model's"
    text = f"{counted(len(model.names), 'sensor')}, windows of {length}, false alarms {rate}"
    yield Line(True, f"plant {name}{where}: {text}")
    for source, secret in options.sources.items():
        document = secret.get_secret_value()
        try:
            feed_of(source, document, name, model, sink)
        except (ValueError, OSError) as error:
            yield Line(False, f"plant {name}{where}: {error}")
        else:
            yield Line(True, f"plant {name}{where}: source {source} ({document['kind']})")


def _shared_sources(settings: Settings, sink: Runtime) -> Iterator[Line]:
    for name, secret in settings.sources.items():
        document = secret.get_secret_value()
        try:
            make_feed(name, read_settings(document, name), sink.target, sink)
        except ValueError as error:
            yield Line(False, str(error))
        else:
            yield Line(True, f"source {name} of several plants ({document['kind']})")


def _listening(store: Store, settings: Settings, *, made: bool) -> Line:
    host, port = settings.listen.host, settings.listen.port
    known: list[guard.Token] = []
    if made:
        with store.read() as connection:
            known = [token for token in guard.listed(connection) if token.state(now()) == "valid"]
    kinds = {scope: sum(scope in token.scopes for token in known) for scope in SCOPES}
    held = ", ".join(f"{many} {scope}" for scope, many in kinds.items() if many) or "none yet"
    try:
        check_host(host, has_token=bool(known), is_open=settings.security.open)
    except ValueError as error:
        return Line(False, f"listen: {error}")
    lasting = show_duration(settings.security.session)
    return Line(True, f"listen: {host} port {port}; tokens: {held}; logins last {lasting}")
