"""A small collection in the layout of labelled collections."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eccaht.base.arrays import Array
from eccaht.plants.data.source import Arrays
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from eccaht.research.datasets.labelled import Entity, find_collections

TRAINING_ROWS = 600


def small_rows(count: int, *, seed: int) -> Array:
    """Eight metrics: three near-duplicates, a constant one, three with common noise, one that is mostly 0."""
    rng = np.random.default_rng(seed)
    rows = np.empty((count, 8))
    rows[:, :3] = rng.standard_normal((count, 1)) + 0.1 * rng.standard_normal((count, 3))
    rows[:, 3] = 0.5
    rows[:, 4:7] = 2.0 * rng.standard_normal((count, 1)) + 0.5 * rng.standard_normal((count, 3))
    rows[:, 7] = rng.random(count) < 0.1
    return rows


def write_collection(directory: Path, names: Sequence[str], *, rows: int = TRAINING_ROWS) -> Path:
    """Write entities whose test has metrics 1 and 4 moved by 8 in rows 10 to 39 and metric 6 in rows 50 to 59."""
    for part in ("train", "test"):
        (directory / part).mkdir(parents=True)
    for k, name in enumerate(names):
        train, test = small_rows(rows, seed=2 * k), small_rows(100, seed=2 * k + 1)
        test[10:40, [1, 4]] += 8.0
        test[50:60, 6] += 8.0
        for part, values in (("train", train), ("test", test)):
            text = "\n".join(",".join(f"{x:.17g}" for x in row) for row in values) + "\n"
            (directory / part / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    segments = [{"start": 10, "stop": 40, "dims": [1, 4]}, {"start": 50, "stop": 60, "dims": [6]}]
    (directory / "truth.json").write_text(json.dumps(dict.fromkeys(names, segments)))
    return directory


def find_entities(directory: Path) -> list[Entity]:
    return find_collections(directory).entities


def as_metrics(rows: Array) -> Arrays:
    names = tuple(f"metric {k}" for k in range(rows.shape[1]))
    return Arrays(np.asfortranarray(rows), names=names, label="the training rows")


def calibrate_rows(rows: Array) -> Model:
    """The model of rows, every row one window; metrics that do not vary are dropped."""
    return calibrate(as_metrics(rows), window="1row")


def scaled_rows(model: Model, rows: Array) -> Array:
    """New rows in robust units, (T, number of kept metrics)."""
    return model.prepare(as_metrics(rows)).values
