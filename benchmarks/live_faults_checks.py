"""What a store holds after `live_faults`, beside what was sent, what an undisturbed watch says, and what arrived."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import sqlalchemy as sa

from benchmarks.jobs import Row
from benchmarks.live_faults_parts import Arrived
from eccaht.arrays import Array
from eccaht.data.windows import Sample
from eccaht.live.plant import LivePlant
from eccaht.live.settings import PlantOptions
from eccaht.live.store import Store, schema
from eccaht.model.model import Model

_SECOND = 1_000_000
_OPTIONS = PlantOptions(false_alarms="1/30d")


def compared(url: str, model: Model, sent: Mapping[str, Array], first: int, arrived: Arrived) -> Row:
    """Counts of what is as it should be, and of what is not; sent: the rows of each plant, a second each."""
    store = Store(url)
    windows, events, found = schema.windows, schema.events, {"windows": 0, "lost": 0, "wrong": 0}
    found |= {"events": 0, "other_events": 0, "without_alert": 0}
    with store.read() as connection:
        box = list(connection.execute(sa.select(schema.outbox)))
        for plant, values in sent.items():
            mine = sa.select(windows).where(windows.c.plant == plant).order_by(windows.c.start)
            stored = list(connection.execute(mine))
            told = sa.select(events.c.document).where(events.c.plant == plant).order_by(events.c.number)
            documents = list(connection.execute(told).scalars())
            _windows(stored, model, values, first, found)
            _events(stored, model, documents, found)
            expected = {
                (d["number"], name) for d in documents if d["event"] in ("alarm", "over") for name in ("h", "p")
            }
            found["without_alert"] += len(
                expected ^ {(row.number, row.channel[0]) for row in box if row.plant == plant}
            )
    store.close()
    return {**found, **_alerts(box, arrived)}


def _windows(stored: list[Any], model: Model, values: Array, first: int, found: Row) -> None:
    """Every second once, with its number and the values that were sent."""
    starts = [row.start for row in stored]
    expected = [(first + k) * _SECOND for k in range(len(values))]
    found["windows"] += len(starts)
    found["lost"] += len(set(expected) - set(starts))
    scaled = (values - model.center) / model.scale
    for number, row in enumerate(stored, 1):
        k = row.start // _SECOND - first
        right = 0 <= k < len(values) and row.number == number and row.rows == 1
        found["wrong"] += not (right and np.array_equal(np.frombuffer(row.values, "<f8"), scaled[k]))


def _events(stored: list[Any], model: Model, documents: list[Any], found: Row) -> None:
    """The events of a watch that takes the same windows without a break."""
    session, again = LivePlant.session_for(model, "", _OPTIONS), []
    for row in stored:
        sample = Sample(
            np.datetime64(row.start, "us"), np.frombuffer(row.values, "<f8").copy(), np.ones(len(model.names))
        )
        again += [
            json.loads(json.dumps(event.document())) for event in session.take(sample, model.clock, late=row.late)
        ]
        session.settle()
    found["events"] += len(documents)
    found["other_events"] += sum(a != b for a, b in zip(again, documents, strict=False))
    found["other_events"] += abs(len(again) - len(documents))


def _alerts(box: list[Any], arrived: Arrived) -> Row:
    hooks = [arrived.hooks[row.document["key"]] for row in box if row.channel == "hook"]
    mails = [(row.status, arrived.mails[row.plant, row.number]) for row in box if row.channel == "post"]
    return {
        "alerts": len(hooks),
        "hooks_once": hooks.count(1),
        "hooks_again": sum(count > 1 for count in hooks),
        "hooks_missing": hooks.count(0),
        "mails_once": mails.count(("sent", 1)),
        "mails_doubtful": sum(status == "doubtful" for status, _ in mails),
        "mails_twice": sum(count > 1 for _, count in mails),
        "mails_missing": sum(status == "sent" and count == 0 for status, count in mails),
        "unsettled": sum(row.status in ("queued", "sending", "failed") for row in box)
        + sum(row.status == "doubtful" for row in box if row.channel == "hook"),
        "unexpected": sum(arrived.hooks.values()) - sum(hooks) + sum(arrived.mails.values()) - sum(n for _, n in mails),
    }
