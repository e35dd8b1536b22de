"""New data are compared with the history before any answer: a line for each way in which they differ."""

import numpy as np
import polars as pl
import pytest

from eccaht.base.arrays import Array
from eccaht.plants.incident.investigate import compare, investigate_incident, outside_of
from tests.plants.incident.worlds import MINUTE, frame_of, model_of, quiet


def compared(frame: pl.DataFrame) -> list[str]:
    model, _ = model_of()
    return compare(model, model.prepare(frame, missing="allow"))[1]


def values_of(windows: int = 240) -> Array:
    return quiet(6, windows, 10)


def test_data_like_the_history_need_no_line() -> None:
    model, _ = model_of()
    normal, found = compare(model, model.prepare(frame_of(values_of())))
    assert found == []
    assert normal is model.normal


def test_fewer_decimals_than_in_the_history_are_said_and_taken_as_usual() -> None:
    frame = frame_of(values_of(), decimals=1)
    (line,) = compared(frame)
    assert "rounded" in line
    model, _ = model_of()
    assert model.normal is not None
    normal, _ = compare(model, model.prepare(frame))
    assert (normal.unit > model.normal.unit).all()  # rounding is noise
    assert investigate_incident(model, model.prepare(frame)).verdict == "nothing"


def test_rows_at_another_interval_are_said() -> None:
    slow = frame_of(values_of(), step=5 * MINUTE)
    (line,) = compared(slow)
    assert "5min" in line
    fast = frame_of(np.repeat(values_of(), 6, axis=0), step=MINUTE // 6)
    assert any("10s" in line for line in compared(fast))


def test_another_operating_point_is_said() -> None:
    values = values_of()
    values[:, [1, 4]] -= 12.0
    (line,) = compared(frame_of(values))
    assert "S1, S4" in line
    model, _ = model_of()
    assert investigate_incident(model, model.prepare(frame_of(values))).verdict == "wrong"
    half = values_of()
    half[:100, 1] -= 12.0
    assert compared(frame_of(half)) == []  # a fault, not an operating point
    assert outside_of(model, model.prepare(frame_of(values)).values) == ["S1", "S4"]


@pytest.mark.parametrize(("share", "said"), [(0.02, False), (0.2, True)])
def test_more_gaps_than_in_the_history_are_said(share: float, said: bool) -> None:
    values = values_of()
    values[np.random.default_rng(0).random(240) < share, 3] = np.nan
    found = compared(frame_of(values).fill_nan(None))
    assert ["S3" in line for line in found] == [True] * said
