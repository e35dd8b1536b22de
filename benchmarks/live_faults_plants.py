"""What the plants of `live_faults` send: right rows, rows from the future, rows too late, and what was acknowledged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from benchmarks.live_service import SENSORS, names, readings
from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for

SECOND = 1_000_000
LATENESS = 30  # seconds that windows of MQTT wait for what the broker lost and is sent again
FAULT, PERIOD, SHIFT = 20, 60, 8.0  # seconds that two sensors are wrong, how often, and by how much
HOURS_AHEAD = 3  # of a source with a wrong clock, beside a right one
FLOODED = 20  # rows of a window of the plant that floods
FROZEN = "http05"  # all of whose sensors repeat their values for a sixth of the time
_LONE = 20  # seconds between two rows from the future
_SOON = {"http": 40, "mqtt": 90}  # seconds ahead of a row that waits until the others are there
_FUTURE = (20 * 3600, 3 * 3600, 48 * 3600)  # seconds ahead of the others; the last is left out, and counted
Rows = list[tuple[int, Array]]


@dataclass(eq=False)
class Plant:
    """Rows by their times in microseconds, and those that the service or the broker has acknowledged.

    sent: what windows are made of. late: sent when their windows were complete. left_out: too far in the future.
    """

    name: str
    sent: dict[int, Array] = field(default_factory=dict)
    acknowledged: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)
    left_out: set[int] = field(default_factory=set)
    old: int = 0  # acknowledged rows that are older than all windows

    @property
    def kind(self) -> str:
        """Which way its rows come."""
        return self.name.rstrip("0123456789")


@dataclass(eq=False)
class Stream:
    """What one source of a plant sends, second by second."""

    plant: Plant
    seconds: list[Rows]


def make_plants(counts: dict[str, int]) -> list[Plant]:
    return [Plant(f"{kind}{k:02d}") for kind, count in counts.items() for k in range(count)]


def streams_of(plants: Sequence[Plant], first: int, seconds: int) -> list[Stream]:
    """The right source of each plant, and beside that of the first of each kind one with a wrong clock."""
    everything, found, kinds = readings(seconds + 2 * LATENESS + 100, "faults").round(3), [], set()
    for k, plant in enumerate(plants):
        found.append(Stream(plant, _right(plant, everything[k:], first, seconds, k)))
        if plant.kind not in kinds:
            kinds.add(plant.kind)
            ahead = [[((first + j + HOURS_AHEAD * 3600) * SECOND, everything[j])] for j in range(seconds)]
            found.append(Stream(plant, ahead))
    for stream in found:
        for rows in stream.seconds:
            stream.plant.sent.update(rows)
    return found


def _right(plant: Plant, values: Array, first: int, seconds: int, number: int) -> list[Rows]:
    """A row a second; two sensors are wrong now and then; what completes the last windows comes at once."""
    rng, values = rng_for(0, "live faults", plant.name), values.copy()
    for begin in range(10 + int(rng.integers(0, PERIOD - FAULT)), seconds - FAULT, PERIOD):
        wrong = rng.choice(SENSORS, 2, replace=False)
        values[begin : begin + FAULT, wrong] += SHIFT
    if plant.name == FROZEN:
        values[seconds // 3 : seconds // 2] = values[seconds // 3]
    rows: list[Rows] = [[((first + j) * SECOND, values[j].round(3))] for j in range(seconds)]
    rows.append([((first + seconds + j) * SECOND, values[seconds + j]) for j in range(_tail(plant))])
    _add_future(plant, rows, values, first, number)
    return rows


def _tail(plant: Plant) -> int:
    return LATENESS + 2 if plant.kind == "mqtt" else 1


def _add_future(plant: Plant, rows: list[Rows], values: Array, first: int, number: int) -> None:
    """Lone rows from the future, of half seconds, so that none is at the time of another."""
    ahead = (_SOON[plant.kind], *_FUTURE)
    for turn, j in enumerate(range(3 + number % _LONE, len(rows) - 1, _LONE)):
        seconds = ahead[turn % len(ahead)]
        time = (first + j + seconds) * SECOND + SECOND // 2
        rows[j].append((time, values[j]))
        if seconds == _FUTURE[-1]:
            plant.left_out.add(time)


def flooding(first: int, number: int, rows: int) -> Rows:
    """A delivery of the plant that floods: windows of a day before, one after the other."""
    pool, begin = _pool(), (first - 86_400) * SECOND
    places = range(number * rows, (number + 1) * rows)
    return [(begin + k * SECOND // FLOODED, pool[k % len(pool)]) for k in places]


@cache
def _pool() -> list[Array]:
    return list(readings(1000, "flood").round(3))


def too_late(plant: Plant, first: int, count: int, *, old: bool) -> Rows:
    """Rows of windows that are complete: older than all of them, or of the last hundred; none without windows."""
    values = readings(count, "late").round(3)
    right = (first + HOURS_AHEAD * 3600) * SECOND
    done = max((time for time in plant.acknowledged if time < right and time % SECOND == 0), default=0)
    if old or done <= (first + 1) * SECOND:  # so that its first window is complete
        return [((first - 40_000 + k) * SECOND, values[k]) for k in range(count if old else 0)]
    begin, each = done - 105 * SECOND, count // 100
    times = [begin + j * SECOND + (k + 1) * 1000 for j in range(100) for k in range(each)]
    plant.late.update(time for time in times if time >= first * SECOND)
    return list(zip(times, values, strict=True))


def as_lines(rows: Rows) -> str:
    """Lines of JSON."""
    columns = names()
    return "\n".join(
        json.dumps({"time": time / 1e6, "values": dict(zip(columns, values.tolist(), strict=True))})
        for time, values in rows
    )


def as_csv(rows: Rows) -> str:
    """The same as CSV, which is shorter."""
    lines = [",".join(["time", *names()])]
    lines += [",".join([f"{time / 1e6:.6f}", *map(str, values.tolist())]) for time, values in rows]
    return "\n".join(lines) + "\n"
