"""Sensors that stop moving or fall silent are known from the data alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.gaps import culprits
from eccaht.plants.model.model import Model
from tests.plants.model.histories import clock, signals, write_csv

NAMES = ["s0", "s1", "s2", "s3"]


def write(path: Path, values: Array) -> Path:
    cells = [["" if np.isnan(x) else f"{x:.3f}" for x in column] for column in values.T]
    return write_csv(path, ["timestamp", *NAMES], [clock(len(values), step=10), *cells])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    values = signals(6000, 4, seed=1)
    values[1000:1150, 3] = np.nan  # it drops out now and then
    values[3000:3020, 2] = values[3000, 2]  # and this one stands still
    return calibrate([write(tmp_path_factory.mktemp("history") / "h.csv", values)], window="1min")


def found(model: Model, values: Array, path: Path) -> list[tuple[str, str, str]]:
    found = culprits(model.prepare([write(path / "new.csv", values)]))
    return [(culprit.sensor, culprit.kind, str(culprit.since)[11:16]) for culprit in found]


def test_no_sensor_is_named_in_normal_data(model: Model, tmp_path: Path) -> None:
    for seed in range(20):
        values = signals(360, 4, seed=100 + seed)
        values[100:130, 1] = np.nan  # five minutes without a reading are a gap, no end
        values[200:206, 0] = values[200, 0]
        assert found(model, values, tmp_path) == []


def test_a_sensor_that_stops_or_falls_silent_is_named_with_the_time(model: Model, tmp_path: Path) -> None:
    values = signals(360, 4, seed=7)
    values[60:, 0], values[120:, 1] = values[60, 0], np.nan
    assert found(model, values, tmp_path) == [("s0", "stuck", "18:10"), ("s1", "silent", "18:20")]


def test_what_the_history_did_too_is_no_news(model: Model, tmp_path: Path) -> None:
    values = signals(360, 4, seed=8)
    values[-36:, 2], values[-250:, 3] = values[-36, 2], np.nan
    assert found(model, values, tmp_path) == []
    values[-60:, 2], values[-330:, 3] = values[-60, 2], np.nan
    assert [(name, kind) for name, kind, _ in found(model, values, tmp_path)] == [("s3", "silent"), ("s2", "stuck")]


def test_a_record_that_stops_is_not_the_sensors_fault(model: Model, tmp_path: Path) -> None:
    values = signals(360, 4, seed=9)
    values[100:] = values[100]
    assert found(model, values, tmp_path) == []
