"""A status that no other column predicts is left out, and no other one: its switches would be false alarms."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.plants.data.source import Arrays
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.fitting import explained
from eccaht.plants.model.model import load_model

NAMES = ("flow", "level", "by hand", "follows flow", "ran once")
T = 600


def history(rows: int = T) -> Arrays:
    rng = np.random.default_rng(0)
    runs, by_hand = (np.repeat(rng.integers(0, 2, rows // 5), 5).astype(float) for _ in range(2))
    once = np.zeros(rows)
    once[50:54] = 1.0
    flow, level = 5.0 * runs + rng.standard_normal(rows), rng.standard_normal(rows)
    return Arrays(np.column_stack([flow, level + 0.5 * flow, by_hand, runs, once]), names=NAMES)


def reasons(source: Arrays, **options: Any) -> dict[str, str]:
    return {column.name: column.reason for column in calibrate(source, drop_unpredicted=True, **options).columns}


def test_only_a_status_that_nothing_predicts_is_left_out_and_that_is_noted() -> None:
    model = calibrate(history(), drop_unpredicted=True)
    assert model.names == ("flow", "level", "follows flow", "ran once")  # once: no other part can say
    (note,) = [note for note in model.reading["notes"] if "predicts" in note]
    assert "by hand" in note


def test_what_is_left_out_is_still_noticed_far_beyond_its_range(tmp_path: Path) -> None:
    calibrate(history(), drop_unpredicted=True).save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.left_out == {"by hand": (0.0, 1.0)}
    new = history().values.copy()
    assert model.prepare(Arrays(new, names=NAMES)).moved() == []
    new[400:, 2], new[100, 2] = 30.0, 2.0  # as far beyond the range as it is wide is not yet far
    windows = model.prepare(Arrays(new, names=NAMES))
    (moved,) = windows.moved()
    assert (moved.name, moved.usual, moved.read, moved.width) == ("by hand", 1.0, 30.0, 1.0)
    assert moved.since == windows.starts[400]
    answer = model.identify(new, names=NAMES, start=300, progress=False)
    assert (answer.named[0], answer.largest.kinds[0]) == ("by hand", "range")


def test_it_is_kept_if_it_is_named() -> None:
    assert reasons(history(), columns=["*", "by hand"])["by hand"] == ""


def test_a_short_history_cannot_say() -> None:
    assert reasons(history(80))["by hand"] == ""


def test_two_sensors_are_left_at_least() -> None:
    rng = np.random.default_rng(1)
    switches = np.repeat(rng.integers(0, 2, (T // 20, 3)), 20, axis=0).astype(float)
    assert set(reasons(Arrays(switches, names=["a", "b", "c"])).values()) == {""}


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_of_normal_readings_the_share_is_the_squared_multiple_correlation(correlation: float) -> None:
    covariance = np.full((3, 3), correlation) + (1.0 - correlation) * np.eye(3)
    values = np.random.default_rng(2).multivariate_normal(np.zeros(3), covariance, size=20_000)
    known = 1.0 - 1.0 / (covariance.diagonal() * np.linalg.inv(covariance).diagonal())
    assert explained(values) == pytest.approx(known, abs=0.03)  # the standard error is about 0.01
