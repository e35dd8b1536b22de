"""Many plants: windows a second and core beside charts and river's detectors, and a fleet of full size in memory.

No part of the default run: the fleet of 20,000 plants needs about 6 GB and some minutes. Every fleet has a process of
its own, so that its memory is its own.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from benchmarks import watch_speed
from benchmarks.fleet_plants import IN_ALARM, SENSORS, fleet, model_of
from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table, thousands, three_digits

FLEETS = ((1000, False), (1000, True), (20_000, False))  # plants, and whether each has a model of its own
QUICK = 20  # times fewer plants
CORES, MINUTE = 2, 60.0


def jobs(quick: bool) -> list[Job]:
    """The speeds and the fleets."""
    found = [Job("fleet, speed", partial(_speed, quick))]
    for plants, own in FLEETS:
        some = plants // QUICK if quick else plants
        found.append(Job(f"fleet, {some} plants, own={own}", partial(_fleet, some, own)))
    return found


def tables(rows: list[Row]) -> list[Table]:
    """One table a kind of rows."""
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in ("speed", "fleet")}
    return [watch_speed.table(kinds["speed"]), _fleets(kinds["fleet"])]


def _speed(quick: bool) -> list[Row]:
    return [{"kind": "speed"} | row for row in watch_speed.measure(quick)]


def _fleet(plants: int, own: bool) -> list[Row]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        rows = process.submit(fleet, plants, model_of().stored(), own).result()
    return [{"kind": "fleet"} | row for row in rows]


# -- tables ----------------------------------------------------------------------------------------------


def _fleets(rows: list[Row]) -> Table:
    lines = []
    for key in dict.fromkeys((row["plants"], row["models"]) for row in rows):
        of = [row for row in rows if (row["plants"], row["models"]) == key]
        busy = max(row["busy"] for row in of)
        line = {name: of[0][name] for name in ("plants", "models", "each", "resident", "alarms")}
        lines.append(line | {"rate": line["plants"] / busy, "share": busy / (CORES * MINUTE)})
    columns = (
        Column("plants", "plants", thousands),
        Column("models", "models", thousands),
        Column("rate", "windows a second and core", thousands),
        Column("share", f"share of a minute of {CORES} cores", lambda value: f"{value:.3f}"),
        Column("each", "kB a plant", lambda value: thousands(value / 1e3)),
        Column("resident", "GB in all", lambda value: three_digits(value / 1e9)),
        Column("alarms", "in alarm"),
    )
    notes = (
        f"A window of {SENSORS} sensors of each plant in one process and thread, the slowest of three rounds, by the "
        f"time of the processor; {IN_ALARM:.0%} of the plants have a fault of 3 sensors from the first round on.",
        "Every plant has all of the past that it will ever keep. Files are not read.",
    )
    return Table("fleet", "Fleets", columns, lines, notes)
