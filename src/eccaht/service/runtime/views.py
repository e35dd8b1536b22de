"""What others see of plants: how they are now, as values of JSON, and their changes, sent to every client that listens.

Changes are one numbered message after the other, with bounded memory. A client that reads too slowly loses what waits
for it and is asked to read everything anew (`resync`); so is one that comes back with the number of a message that is
no longer kept.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.clock import Clock, microseconds
from eccaht.plants import Event, Model
from eccaht.plants.data.horizon import latest_believed
from eccaht.plants.watch.events import iso
from eccaht.plants.watch.plant import State
from eccaht.service.rows import Busy, SourceState
from eccaht.service.settings import PlantOptions
from eccaht.service.store.schema import STATES, UNJUDGED
from eccaht.streams import Alarm

_KEPT = 4000  # messages for clients that come back
_TICK = 0.25  # seconds between what one client is sent
_BEAT = 10.0  # seconds without a message until a heartbeat


PlantState = Literal["broken", "waiting", "no-data", "quiet", "suspicious", "changed", "alarm"]


@dataclass(frozen=True)
class PlantView:
    """A plant as it is now, for all to read."""

    name: str
    model_digest: str
    model: Model
    era: int
    options: PlantOptions
    state: str
    evidence: float
    threshold_every: float
    rate_line: str
    position: np.datetime64 | None
    windows: int
    alarm: Alarm | None
    peak: float  # the largest evidence of the alarm so far
    asked: tuple[tuple[str, str], ...]  # sensors to read next and why, none where all are read
    acknowledged: bool
    still: Mapping[str, Mapping[str, np.datetime64]]  # by kind, sensors that are stuck, silent or out of range
    shelved: Mapping[str, np.datetime64]
    suspects: tuple[dict[str, Any], ...]
    late: int
    duplicate: int
    ahead: int
    held: int
    no_data: str | None
    offsets: Array
    renewed: int | None  # since when the offsets hold, microseconds
    restorable: bool  # whether the last of them can be taken back
    sources: Mapping[str, SourceState] = field(default_factory=dict)
    watched_by: str | None = None  # the service, None if none lives that does

    def shifts(self, starts: NDArray[np.int64]) -> Array:
        """What operators called normal, less what was, of windows that start then: (T, K), in robust units."""
        since = 1 << 62 if self.renewed is None else self.renewed
        return np.where((starts > since)[:, None], self.offsets, 0.0)

    @property
    def sensors(self) -> tuple[str, ...]:
        return self.model.names

    @property
    def shown(self) -> PlantState:
        """The state for all to see: a plant that is not watched is not quiet, whatever its last window was."""
        if self.state in ("alarm", "changed"):
            return cast(PlantState, self.state)
        if self.no_data is not None:
            return "no-data"
        return cast(PlantState, self.state) if self.windows else "waiting"


Severity = Literal["low", "medium", "high"]


def severity(sensors: int, peak: float) -> Severity:
    """How severe an alarm is, by its number of sensors and its largest evidence, in nats above the threshold.

    High: three sensors or more, or a million times as rare as the threshold. Medium: two sensors, or a hundred times.
    """
    if sensors >= 3 or peak >= math.log(1e6):
        return "high"
    return "medium" if sensors == 2 or peak >= math.log(100.0) else "low"


def severity_now(view: PlantView) -> Severity | None:
    """The severity of a plant in alarm; None of any other."""
    wrong = {name for names in view.still.values() for name in names}
    wrong |= set() if view.alarm is None else set(view.alarm.names)
    return severity(len(wrong), view.peak) if wrong else None


def stamp(clock: Clock, time: Any) -> str | None:
    """A time of a plant, or microseconds of it, for programs."""
    if time is None:
        return None
    return iso(clock, time if isinstance(time, np.datetime64) else np.datetime64(int(time), "us"))


def moment(time: int | datetime | None) -> str | None:
    """A time of the service, in microseconds, for programs."""
    if time is None:
        return None
    found = time if isinstance(time, datetime) else datetime.fromtimestamp(time / 1e6, UTC)
    return found.isoformat(timespec="milliseconds")


def finite(number: float | None) -> float | None:
    return None if number is None or not math.isfinite(number) else float(number)


def judged(evidence: float, state: int) -> tuple[float | None, State | None]:
    """The evidence and the state of a stored window, None if it was not watched."""
    return (None, None) if state == UNJUDGED else (finite(evidence), STATES[state])


def window_document(row: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """A stored window without its values."""
    evidence, state = judged(row["evidence"], row["state"])
    return {"plant": row["plant"], "time": stamp(clock, row["start"]), "evidence": evidence, "state": state}


def event_message(plant: str, event: Event) -> tuple[str, str, dict[str, Any]]:
    """An event for `Hub.publish`."""
    return "event", plant, {"plant": plant, "document": event.document()}


def source_document(state: SourceState) -> dict[str, Any]:
    return {**asdict(state), "since": moment(state.since), "last": moment(state.last)}


def action_document(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "at": moment(row["at"])}


def overview(view: PlantView) -> dict[str, Any]:
    """A plant as a row among others."""
    clock, alarm = view.model.clock, view.alarm
    return {
        "name": view.name,
        "state": view.shown,
        "evidence": finite(view.evidence),
        "severity": severity_now(view),
        "acknowledged": view.acknowledged,
        "position": stamp(clock, view.position),
        "windows": view.windows,
        "named": list(alarm.names) if alarm is not None else [],
        "onset": stamp(clock, alarm.onset) if alarm is not None else None,
        "no_data": view.no_data,
        "watched_by": view.watched_by,
        "still": {kind: list(names) for kind, names in view.still.items()},
        "shelved": {name: stamp(clock, until) for name, until in view.shelved.items()},
        "sources": {name: source_document(state) for name, state in view.sources.items()},
        "sensors": len(view.sensors),
    }


def broken_overview(name: str, fault: str) -> dict[str, Any]:
    """The same of a plant of which the store has no more than the name that can be read."""
    nothing: dict[str, Any] = dict.fromkeys(("evidence", "severity", "position", "onset", "watched_by"))
    empty: dict[str, Any] = {"named": [], "still": {}, "shelved": {}, "sources": {}, "windows": 0, "sensors": 0}
    return {"name": name, "state": "broken", "no_data": fault, "acknowledged": False, **nothing, **empty}


def _alarm_document(alarm: Alarm, clock: Clock) -> dict[str, Any]:
    return {
        "raised": stamp(clock, alarm.time),
        "onset": stamp(clock, alarm.onset),
        "onset_interval": [stamp(clock, time) for time in alarm.onset_interval],
        "named": list(alarm.names),
        "kinds": list(alarm.kinds),
        "sizes": [finite(size) for size in alarm.sizes.tolist()],
        "beliefs": alarm.beliefs[alarm.decision].tolist(),
        "confidence": alarm.confidence,
    }


def plant_document(view: PlantView, model_name: str) -> dict[str, Any]:
    clock, offsets = view.model.clock, view.offsets * view.model.scale
    return overview(view) | {
        "model_digest": view.model_digest,
        "model": model_name,
        "seconds": view.model.seconds,
        "timezone": clock.zone,
        "row_seconds": clock.row_interval,
        "sensors": list(view.sensors),
        "threshold_every": view.threshold_every,
        "false_alarm_rate": view.rate_line,
        "drilled": view.model.drilled is not None,
        "fault": None if view.alarm is None else _alarm_document(view.alarm, clock),
        "still_since": {name: stamp(clock, time) for names in view.still.values() for name, time in names.items()},
        "suspects": list(view.suspects),
        "asked": [{"sensor": sensor, "why": why} for sensor, why in view.asked],
        "late": view.late,
        "duplicate": view.duplicate,
        "ahead": view.ahead,
        "held": view.held,
        "options": view.options.model_dump(mode="json"),
        "offsets": {view.sensors[k]: float(offsets[k]) for k in np.flatnonzero(offsets).tolist()},
        "restorable": view.restorable,
    }


def next_document(view: PlantView) -> dict[str, Any]:
    """The sensors to read in the window that comes, or in the one that is open, and until when their rows may come."""
    clock, step = view.model.clock, round(view.model.seconds * 1e6)
    known = None if view.position is None else microseconds(view.position) + step
    present = latest_believed(clock, 0.0)
    open_now = None if present is None or clock.zone is None else int(clock.floor(np.array([present]), step)[0])
    start = max((time for time in (known, open_now) if time is not None), default=None)
    asked = view.asked or tuple((name, "") for name in view.sensors if name not in view.shelved)
    return {
        "sensors": [{"sensor": sensor, "why": why} for sensor, why in asked],
        "window": stamp(clock, start),
        "deadline": None if start is None else stamp(clock, start + step + round(view.options.lateness * 1e6)),
    }


class _Message(NamedTuple):
    """A message; content: as the stream has it."""

    number: int
    plant: str
    content: bytes


class Hub:
    """Takes messages and hands them to clients; all of it on the loop, but `publish_soon`."""

    def __init__(self, clients: int = 500, messages: int = 2000) -> None:
        self._most_clients, self._most = clients, messages
        self._number = time.time_ns() // 1000  # larger than any of an earlier program
        self._kept: deque[_Message] = deque(maxlen=_KEPT)
        self._clients: set[_Client] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.dropped = 0
        self._closed = False

    def start(self) -> None:
        """From now on messages may come from other threads."""
        self._loop = asyncio.get_running_loop()
        self._closed = False

    @property
    def clients(self) -> int:
        return len(self._clients)

    def publish_soon(self, messages: Iterable[tuple[str, str, Any]]) -> None:
        """The same from another thread."""
        if (found := list(messages)) and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.publish, found)

    def publish(self, messages: Iterable[tuple[str, str, Any]]) -> None:
        """Send messages: kind, plant and a document each."""
        new = []
        for kind, plant, document in messages:
            self._number += 1
            text = json.dumps(document, separators=(",", ":"), allow_nan=False)
            new.append(_Message(self._number, plant, f"id: {self._number}\nevent: {kind}\ndata: {text}\n\n".encode()))
        self._kept.extend(new)
        for client in self._clients:
            client.put(new)

    def close(self) -> None:
        self._closed = True
        for client in self._clients:
            client.awake.set()

    @contextmanager
    def listen(self, plant: str | None = None, after: int | None = None) -> Iterator[AsyncIterator[bytes]]:
        """The stream of one client, which has its place for the length of a `with`; refused if there is none left.

        plant: of this one only; after: the last message that it had.
        """
        if len(self._clients) >= self._most_clients:
            raise Busy(f"{self._most_clients} pages are open already: close one", 10.0)
        client = _Client(plant, self._most)
        if after is not None:
            self._catch_up(client, after)
        self._clients.add(client)
        try:
            yield self._stream(client)
        finally:
            self._clients.discard(client)

    async def _stream(self, client: _Client) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n" + _beat()
        while not self._closed:
            try:
                await asyncio.wait_for(client.awake.wait(), _BEAT)
            except TimeoutError:
                yield _beat()
                continue
            if chunk := self._chunk(client):
                yield chunk
            await asyncio.sleep(_TICK)

    def _catch_up(self, client: _Client, after: int) -> None:
        if after > self._number or (after < self._number and (not self._kept or self._kept[0].number > after + 1)):
            client.lost = True
            client.awake.set()
            return
        client.put(list(islice(self._kept, max(len(self._kept) - (self._number - after), 0), None)))

    def _chunk(self, client: _Client) -> bytes:
        parts, lost = client.take()
        if lost:
            self.dropped += 1
            return f"id: {self._number}\nevent: resync\ndata: {{}}\n\n".encode()
        return b"".join(parts)


class _Client:
    def __init__(self, plant: str | None, most: int) -> None:
        self.plant, self.most = plant, most
        self.waiting: list[bytes] = []
        self.lost = False
        self.awake = asyncio.Event()

    def put(self, messages: list[_Message]) -> None:
        mine = [each.content for each in messages if self.plant in (None, each.plant) or not each.plant]
        if not mine:
            return
        self.waiting += mine
        if len(self.waiting) > self.most:
            self.waiting, self.lost = [], True
        self.awake.set()

    def take(self) -> tuple[list[bytes], bool]:
        waiting, lost = self.waiting, self.lost
        self.waiting, self.lost = [], False
        self.awake.clear()
        return waiting, lost


def _beat() -> bytes:
    return f"event: heartbeat\ndata: {int(time.time())}\n\n".encode()
