"""Small collections in the layouts of testbeds."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from eccaht.base.arrays import Array

SENSORS = ("level", "flow", "pressure", "idle")
FIRST = np.datetime64("2024-01-01T00:00:00", "s")


def plant_rows(count: int, *, seed: int) -> Array:
    """Three sensors with common noise and one that never moves."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, 4))
    rows[:, :3] = rng.standard_normal((count, 1)) + 0.3 * rng.standard_normal((count, 3))
    return rows


def write_sheet(path: Path, columns: Mapping[str, Array], step: int, *, comma: str = ",", digits: int = 9) -> None:
    """Columns with times `step` seconds apart, packed if the name ends so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = len(next(iter(columns.values())))
    times = [str(FIRST + np.timedelta64(k * step, "s")).replace("T", " ") for k in range(count)]
    lines = [comma.join(["time", *columns])]
    for time, row in zip(times, np.column_stack(list(columns.values())), strict=True):
        lines.append(comma.join([time, *(f"{x:.{digits}f}" for x in row)]))
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def named(rows: Array) -> dict[str, Array]:
    return dict(zip(SENSORS, rows.T, strict=True))


def write_batadal(directory: Path, name: str = "attacks-1-to-2.csv.gz") -> Path:
    """A history of 800 hours; 200 hours with attacks on the level in hours 50 to 69 and 120 to 129."""
    write_sheet(directory / "history.csv.gz", named(plant_rows(800, seed=0)), 3600)
    rows = plant_rows(200, seed=1)
    rows[50:70, 0] += 8.0
    rows[120:130, 0] += 8.0
    write_sheet(directory / name, named(rows), 3600, digits=2)
    ends = [(50, 69), (120, 129)]
    attacks = [{"start": _time(a), "stop": _time(b), "altered": ["level"]} for a, b in ends]
    (directory / "truth.json").write_text(json.dumps({"attacks": attacks}))
    return directory


def _time(hour: int) -> str:
    return str(FIRST + np.timedelta64(hour, "h")).replace("T", " ")


def write_skab(directory: Path, names: Sequence[str] = ("valve1/0", "valve1/1")) -> Path:
    """Files of 600 s, anomalous from row 450 to 519, and beside them one without labels."""
    for k, name in enumerate(names):
        rows, labels = plant_rows(600, seed=10 + k), np.zeros((600, 2))
        rows[450:520, 1] -= 8.0
        labels[450:520, 0] = 1.0
        labels[[450, 520], 1] = 1.0
        columns = {**named(rows), "anomaly": labels[:, 0], "changepoint": labels[:, 1]}
        write_sheet(directory / f"{name}.csv.gz", columns, 1, comma=";")
    write_sheet(directory / "anomaly-free.csv.gz", named(plant_rows(100, seed=9)), 1, comma=";")
    return directory


def write_tep(directory: Path, faults: Sequence[str] = ("fault-01", "fault-02")) -> Path:
    """500 rows, 300 quiet ones, and 300 with a fault from row 161 on: the first is seen, others are not."""
    write_sheet(directory / "normal.csv.gz", named(plant_rows(500, seed=20)), 180)
    write_sheet(directory / "normal-test.csv.gz", named(plant_rows(300, seed=21)), 180)
    for k, fault in enumerate(faults):
        rows = plant_rows(300, seed=22 + k)
        if k == 0:
            rows[160:, 2] += 8.0
        write_sheet(directory / f"{fault}.csv.gz", named(rows), 180)
    return directory


def write_sockshop(directory: Path, cases: Sequence[str] = ("carts-cpu-2", "carts-cpu-10")) -> Path:
    """Cases with 240 s of history, and 60 quiet seconds before the pressure leaves its course and the flow follows."""
    truth = {}
    for k, case in enumerate(cases):
        write_sheet(directory / case / "history.csv.gz", named(plant_rows(240, seed=30 + k)), 1)
        rows = plant_rows(200, seed=40 + k)
        rows[60:, 2] += 40.0
        rows[90:, 1] += 8.0
        write_sheet(directory / case / "incident.csv.gz", named(rows), 1)
        truth[case] = {"root": "pressure", "onset": str(FIRST + np.timedelta64(60, "s")).replace("T", " ")}
    (directory / "truth.json").write_text(json.dumps(truth))
    return directory


def write_hvac(directory: Path) -> Path:
    """Five days of half hours, then five others: a fault on the second, and on the fourth."""
    write_sheet(directory / "history.csv.gz", named(plant_rows(240, seed=50)), 1800)
    rows = plant_rows(240, seed=51)
    rows[48:96, 0] += 8.0
    rows[144:192, 1] += 8.0
    write_sheet(directory / "test.csv.gz", named(rows), 1800)
    days = [f"2024-01-0{day}" for day in range(1, 6)]
    (directory / "truth.json").write_text(json.dumps({"bad": days[1::2], "good": days[::2]}))
    return directory
