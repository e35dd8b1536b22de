"""Many plants: windows a second and core beside charts and river's detectors, and a fleet of full size in memory.

No part of the default run: the fleet of 20,000 plants needs about 6 GB and some minutes. Every fleet has a process of
its own, so that its memory is its own.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks import watch_speed
from benchmarks.fleet_plants import IN_ALARM, SENSORS, fleet, model_of
from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table, milliseconds, thousands, three_digits
from eccaht.cli.watch_windows import Growing
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.prepare import Notation

FLEETS = ((1000, False), (1000, True), (20_000, False))  # plants, and whether each has a model of its own
QUICK = 20  # times fewer plants
CORES, MINUTE = 2, 60.0
LOOKS = 60  # at a growing file
ROWS = (1, 5, 60)  # new ones in each look
_START = np.datetime64("2024-05-01", "s")


def jobs(quick: bool) -> list[Job]:
    """The speeds, the fleets, and what reading growing files takes."""
    found = [Job("fleet, speed", partial(_speed, quick))]
    for plants, own in FLEETS:
        some = plants // QUICK if quick else plants
        found.append(Job(f"fleet, {some} plants, own={own}", partial(_fleet, some, own)))
    return [*found, Job("fleet, reading", partial(_reading, LOOKS // 10 if quick else LOOKS))]


def tables(rows: list[Row]) -> list[Table]:
    """One table a kind of rows."""
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in ("speed", "fleet", "reading")}
    return [watch_speed.table(kinds["speed"]), _fleets(kinds["fleet"]), _looks(kinds["reading"])]


def _speed(quick: bool) -> list[Row]:
    return [{"kind": "speed"} | row for row in watch_speed.measure(quick)]


def _fleet(plants: int, own: bool) -> list[Row]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        rows = process.submit(fleet, plants, model_of().parts(), own).result()
    return [{"kind": "fleet"} | row for row in rows]


def _reading(looks: int) -> list[Row]:
    """Time of a look at a growing CSV file that has new rows, one window each."""
    rng, found = np.random.default_rng(0), list[Row]()
    header = ",".join(["time", *(f"s{k}" for k in range(SENSORS))])

    def lines(first: int, last: int) -> str:
        values = rng.standard_normal((last - first, SENSORS))
        times = [str(_START + np.timedelta64(60 * t, "s")) for t in range(first, last)]
        rows = [",".join([when, *(f"{x:.4f}" for x in row)]) for when, row in zip(times, values.tolist(), strict=True)]
        return "".join(f"{row}\n" for row in rows)

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "live.csv"
        path.write_text(f"{header}\n{lines(0, 500)}")
        model = calibrate_with_windows([path], window="1min")[0]
        for rows in ROWS:
            path.write_text(f"{header}\n{lines(0, 2)}")
            source = Growing(model, [path], None, poll=0.0, timeout=None, missing="refuse", notation=Notation())
            source.look(held=False)
            taken = []
            for k in range(looks):
                with path.open("a") as file:
                    file.write(lines(2 + k * rows, 2 + (k + 1) * rows))
                begun = process_time()
                _, windows = source.look(held=False)
                taken.append(process_time() - begun)
                assert len(windows) == rows
            found.append({"kind": "reading", "rows": rows, "busy": float(np.median(taken))})
    return found


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


def _looks(rows: list[Row]) -> Table:
    lines = [row | {"each": row["busy"] / row["rows"]} for row in rows]
    columns = (
        Column("rows", "new rows"),
        Column("busy", "ms a look", milliseconds),
        Column("each", "ms a row", milliseconds),
    )
    notes = (f"A CSV file of {SENSORS} sensors, opened for each look; a row is a window.",)
    return Table("fleet-reading", "Looks at a growing file", columns, lines, notes)
