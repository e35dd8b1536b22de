"""A column that never changed in the history is remembered, and named once it moves."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eccaht.model.calibration import calibrate
from eccaht.model.constants import Moved, moved_constants
from eccaht.model.model import load_model
from tests.model.histories import START, clock, signals, write_csv

ROWS = 900


def table(path: Path, valve: list[float], text: str = "on") -> Path:
    columns = [clock(ROWS), *signals(ROWS, 2).T.tolist(), valve, [0.1] * ROWS, [text] * ROWS]
    return write_csv(path, ["time", "a", "b", "valve", "setpoint", "mode"], columns)


def test_a_constant_that_moves(tmp_path: Path) -> None:
    calibrate(table(tmp_path / "h.csv", [7.0] * ROWS)).save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.constants == {"valve": 7.0, "setpoint": 0.1}
    assert moved_constants(model, tmp_path / "h.csv") == []
    new = table(tmp_path / "new.csv", [7.0] * 500 + [8.5] * 400, "off")
    since = START + np.timedelta64(500, "s")
    assert moved_constants(model, new) == [Moved("valve", 7.0, 8.5, since)]
    assert moved_constants(model, new, stop="2017-09-25T18:05") == []


def test_columns_that_are_not_there_have_not_moved(tmp_path: Path) -> None:
    model = calibrate(table(tmp_path / "h.csv", [7.0] * ROWS))
    columns = [clock(ROWS), *signals(ROWS, 2).T.tolist()]
    assert moved_constants(model, write_csv(tmp_path / "new.csv", ["time", "a", "b"], columns)) == []
