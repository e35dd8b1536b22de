"""What a store holds after `live_faults`, beside what was sent, what an undisturbed watch says, and what arrived."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import sqlalchemy as sa

from benchmarks.jobs import Row
from benchmarks.live_faults_parts import Arrived
from benchmarks.live_faults_plants import SECOND, Plant
from eccaht.base.arrays import Array
from eccaht.plants.data.windows import Sample
from eccaht.plants.intake import SeenReadings
from eccaht.plants.model.model import Model
from eccaht.service.runtime.plant import LivePlant
from eccaht.service.settings import PlantOptions
from eccaht.service.store import Store, schema
from eccaht.service.store.schema import UNJUDGED

_OPTIONS = PlantOptions(false_alarms="1/30d")
_DATA = ("no-data", "data-back", "acknowledged")  # events that no window shows
_UNSAID = 20  # windows in a row that were not watched and must have been called so
_WORDS = ("gap", "late", "no-data")  # events that say that windows are missing
_NEAR = 60 * SECOND  # by how much the time of such an event may differ from that of the windows


def compared(
    url: str, model: Model, plants: Sequence[Plant], arrived: Arrived, orders: Collection[tuple[str, int]]
) -> Row:
    """Counts of what is as it should be, and of what is not."""
    store = Store(url)
    found = Counter(dict.fromkeys(("windows", "rows", "lost", "wrong", "blind", "unsaid", "events", "other_events"), 0))
    details: list[str] = []
    with store.read() as connection:
        obeyed = sa.select(schema.events.c.plant, schema.events.c.number).where(schema.events.c.kind == "acknowledged")
        kept = {(row.plant, row.number) for row in connection.execute(obeyed)}
        found["orders"], found["orders_lost"] = len(orders), len(set(orders) - kept)
        box = list(connection.execute(sa.select(schema.outbox)))
        for plant in plants:
            details += _compare(connection, model, plant, found)
            events = connection.execute(sa.select(schema.events.c.document).where(schema.events.c.plant == plant.name))
            told = [event["number"] for event in events.scalars() if event["notice"] is not None]
            expected = {(number, name) for number in told for name in ("hook", "post")}
            found["without_alert"] += len(
                expected ^ {(row.number, row.channel) for row in box if row.plant == plant.name}
            )
    store.close()
    return {**found, **_alerts(box, arrived), "details": details}


def _compare(connection: sa.Connection, model: Model, plant: Plant, found: Counter[str]) -> list[str]:
    """Count what is wrong with a plant, and say what was lost."""
    windows, events = schema.windows, schema.events
    stored = connection.execute(sa.select(windows).where(windows.c.plant == plant.name).order_by(windows.c.start)).all()
    mine = sa.select(events.c.document, events.c.time).where(events.c.plant == plant.name).order_by(events.c.number)
    reported = connection.execute(mine).all()
    seen = [SeenReadings.parse(row.seen, len(model.names)).times.tolist() for row in stored]
    kept = {time for times in seen for time in times} | _waiting(connection, model, plant.name)
    found["windows"] += len(stored)
    found["rows"] += len(plant.acknowledged) + plant.old
    lost = _lost(connection, plant, kept)
    found["lost"] += len(lost)
    found["wrong"] += sum(_is_wrong(*pair, plant, model) for pair in zip(stored, seen, strict=True))
    found["wrong"] += sum(row.number != number for number, row in enumerate(stored, 1))
    found["blind"] += _blind([row.start for row in stored], lost, reported)
    found["unsaid"] += _unsaid(stored, reported)
    found["no_data"] += sum(event.document["event"] == "no-data" for event in reported)
    _events(stored, model, [event.document for event in reported], found)
    return [f"{plant.name} lost {sorted(lost)[:100]}"] if lost else []


def _waiting(connection: sa.Connection, model: Model, plant: str) -> set[int]:
    """The times of the rows whose windows are not complete, as the service will read them."""
    row = connection.execute(sa.select(schema.plants).where(schema.plants.c.name == plant)).one()
    return set(LivePlant.load(connection, row, model, 200_000).intake.waiting.times.astype(np.int64).tolist())


def _lost(connection: sa.Connection, plant: Plant, kept: set[int]) -> set[int]:
    """Rows that were acknowledged and are neither in a window nor wait, and were not counted as what they are."""
    counts = connection.execute(sa.select(schema.counts).where(schema.counts.c.plant == plant.name)).one_or_none()
    late, ahead = (0, 0) if counts is None else (counts.late, counts.ahead)
    lost = (plant.acknowledged & plant.sent.keys()) - kept - plant.left_out
    if ahead < len(plant.left_out & plant.acknowledged):
        lost |= plant.left_out
    if late < plant.old + len(plant.late & plant.acknowledged):
        lost |= {-1}
    return lost


def _is_wrong(row: Any, times: Iterable[int], plant: Plant, model: Model) -> bool:
    """Whether a window is not the mean of the rows of its second that were sent in time."""
    made = [plant.sent[time] for time in times if time in plant.sent and time not in plant.late]
    unknown = any(time not in plant.sent and time not in plant.late for time in times)
    if unknown or len(made) != row.rows or any(time // SECOND * SECOND != row.start for time in times):
        return True
    scaled: Array = (np.array(made) - model.center) / model.scale
    return not np.allclose(np.frombuffer(row.values, "<f8"), scaled.mean(axis=0), rtol=0.0, atol=1e-9)


def _blind(starts: Sequence[int], lost: set[int], reported: Sequence[Any]) -> int:
    """Windows that are missing between others, or have lost rows, with no event about it near them."""
    words = [event.time for event in reported if event.document["event"] in _WORDS]
    missing = [(a + SECOND, b) for a, b in pairwise(starts) if b - a > SECOND] + [(time, time) for time in lost]
    return sum(not any(a - _NEAR <= time <= b + _NEAR for time in words) for a, b in missing)


def _unsaid(stored: Sequence[Any], reported: Sequence[Any]) -> int:
    """Stretches of windows that were not watched without a word about it."""
    words = [event.time for event in reported if event.document["event"] == "no-data"]
    stretches = [
        [row.start for row in rows] for state, rows in groupby(stored, lambda row: row.state) if state == UNJUDGED
    ]
    return sum(not any(s[0] <= time <= s[_UNSAID] for time in words) for s in stretches if len(s) > _UNSAID)


def _events(stored: Sequence[Any], model: Model, documents: list[Any], found: Counter[str]) -> None:
    """The events of a watch that takes the same windows without a break."""
    session, again = LivePlant.session_for(model, "", _OPTIONS), []
    for row in stored:
        values = np.frombuffer(row.values, "<f8").copy()
        counted = np.full(len(model.names), float(row.rows))
        sample = Sample(np.datetime64(row.start, "us"), values, counted, late=row.late)
        again += [json.loads(json.dumps(event.document())) for event in session.take(sample, model.clock)]
        session.settle()
    mine = [document for document in documents if document["event"] not in _DATA]
    found["events"] += len(documents)
    found["other_events"] += sum(_bare(a) != _bare(b) for a, b in zip(again, mine, strict=False))
    found["other_events"] += abs(len(again) - len(mine))
    found["other_events"] += sum(document["number"] != number for number, document in enumerate(documents, 1))


def _bare(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "number"}


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
