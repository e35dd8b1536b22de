"""A small plant to watch: a model of four sensors, and a record in which this and that goes wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.cli.main import run
from eccaht.plants.model import calibrate
from tests.plants.model.histories import START, history

NAMES = ["s0", "s1", "s2", "s3"]
ROWS = 5  # of a window
WINDOW = f"{ROWS}s"
WINDOWS = 240
FAULTS = {"s1": (60, 100), "s3": (145, 185)}  # windows in which they read too high
SILENT = ("s2", 212, 235)
MISSING = (126, 134)


def make_model(directory: Path) -> Path:
    """The file of a model of quiet operation."""
    path = directory / "plant.eccaht"
    record = history(directory / "history.csv", rows=4000)
    calibrate(record, window=WINDOW).save(path)
    return path


def lines(seed: int = 1) -> list[str]:
    """The record as lines of CSV, the names first."""
    rng = np.random.default_rng(0)
    rng.standard_normal((4000, 4))
    mixing = rng.standard_normal((4, 4))  # as in the history
    values = np.random.default_rng(seed).standard_normal((WINDOWS * ROWS, 4)) @ mixing + 10.0
    for name, (first, last) in FAULTS.items():
        values[first * ROWS : last * ROWS, NAMES.index(name)] += 4.0
    cells = np.char.mod("%.3f", values).astype(object)
    name, first, last = SILENT
    cells[first * ROWS : last * ROWS, NAMES.index(name)] = ""
    kept = [t for t in range(len(values)) if not MISSING[0] <= t // ROWS < MISSING[1]]
    begun = START + np.timedelta64(1, "D")
    times = [str(begun + t * np.timedelta64(1, "s")) for t in kept]
    return [
        ",".join(["timestamp", *NAMES]),
        *(",".join([when, *cells[t]]) for when, t in zip(times, kept, strict=True)),
    ]


def write_record(path: Path) -> Path:
    """The record as a file."""
    path.write_text("\n".join(lines()) + "\n")
    return path


def logged(log: Path) -> list[dict[str, Any]]:
    """The events of the plant in a log; those of the program have no number."""
    documents = [json.loads(line) for line in log.read_text().splitlines()]
    return [document for document in documents if document["number"] is not None]


class Killed(BaseException):
    """What SIGKILL does to a program, as far as its files are concerned: nothing more is done."""


def until_it_ends(arguments: list[str]) -> bool:
    """Whether a command ends by itself and is not killed."""
    try:
        assert run(arguments) == 0
    except Killed:
        return False
    return True
