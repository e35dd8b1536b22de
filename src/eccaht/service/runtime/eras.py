"""A plant is made, or gets other options or another model; each model of a plant has an era of its own."""

from __future__ import annotations

import sqlalchemy as sa

from eccaht.plants import Event, Model
from eccaht.plants.watch.state import with_rate
from eccaht.service.runtime.plant import LivePlant
from eccaht.service.settings import PlantOptions
from eccaht.service.store import schema
from eccaht.service.store.store import StoredStep, insert, last_number, now, upsert


def put(
    connection: sa.Connection,
    name: str,
    model: Model,
    digest: str,
    options: PlantOptions,
    old: LivePlant | None,
    most: int,
) -> StoredStep:
    """Write a plant, and return what has to be stored of it beside that.

    old: the plant as the store has it, None if there is none. With the same model it goes on, at another false-alarm
    rate perhaps; else a new era begins. most: rows that may wait.
    """
    row = connection.execute(sa.select(schema.plants).where(schema.plants.c.name == name)).one_or_none()
    era, created = (1, now()) if row is None else (row.era, row.created)
    session = LivePlant.session_for(model, digest, options)
    if old is not None and old.digest == digest:
        step, every = StoredStep(name), session.watch.false_alarm_every
        if every != old.session.watch.false_alarm_every:
            old.session.watch = with_rate(old.session.watch, every)
            step.checkpoint = old.checkpoint()
    else:
        era += row is not None
        closed = list[Event]()
        session.number = last_number(connection, name)
        if old is not None:
            session.position = old.session.position
            session.hearing.know(old.hearing.reason)
            closed = old.session.close("the plant has another model now", old.clock)
            session.number = max(session.number, old.session.number)
        plant = LivePlant(name, model, digest, era, options, session, most)
        connection.execute(sa.delete(schema.pending).where(schema.pending.c.plant == name))
        step = StoredStep(name) if old is None else plant.carry(old)
        if session.position is not None:
            step.add(closed, session.position)
        step.checkpoint = plant.checkpoint()
        begun = {"plant": name, "era": era, "digest": digest, "number": session.number, "created": now()}
        insert(connection, schema.eras, [begun])
    known = {"name": name, "digest": digest, "era": era, "options": options.stored(), "created": created}
    upsert(connection, schema.plants, [known])
    return step
