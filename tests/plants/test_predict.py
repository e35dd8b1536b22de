"""What sensors should read is the conditional mean of the model's own Gaussian, as a frame that pandas users expect."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

import eccaht

NAMES = ["flow", "level", "heat", "speed"]


def readings(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = 50.0 + rng.standard_normal((rows, 1)) + 0.3 * rng.standard_normal((rows, 4))
    return pd.DataFrame(values, pd.date_range("2024-01-01", periods=rows, freq="1min", name="time"), NAMES)


@pytest.fixture(scope="module")
def model() -> eccaht.Model:
    return eccaht.calibrate(readings(600, 0), drills=0, window="1min")


def wide(frame: Any, column: str) -> Any:
    return frame.pivot(index="time", columns="sensor", values=column)[NAMES].to_numpy()


def conditional(model: eccaht.Model, values: Any, k: int, known: list[int]) -> tuple[Any, float]:
    """Mean and deviation of a sensor given others, by the textbook formula on the covariance of a window."""
    assert model.normal is not None
    unit = model.scale * model.normal.scale
    mean, cov = model.raw(model.normal.centre), np.linalg.inv(model.normal.others) * np.outer(unit, unit)
    gain = cov[k, known] @ np.linalg.inv(cov[np.ix_(known, known)])
    return mean[k] + (values[:, known] - mean[known]) @ gain, float(np.sqrt(cov[k, k] - gain @ cov[known, k]))


@pytest.mark.parametrize("wrong", [(), "level", ["heat", "flow"]])
def test_expected_values_and_bands_are_those_of_the_conditional(model: eccaht.Model, wrong: Any) -> None:
    new = readings(100, 1)
    found = model.predict(new, wrong=wrong)
    assert list(found) == ["time", "sensor", "read", "expected", "low", "high", "residual", "deviations"]
    assert_allclose(wide(found, "read"), new, rtol=1e-9)
    for k, name in enumerate(NAMES):
        known = [j for j in range(4) if j != k and NAMES[j] not in np.atleast_1d(wrong)]
        expected, deviation = conditional(model, new.to_numpy(), k, known)
        assert_allclose(wide(found, "expected")[:, k], expected, rtol=1e-9)
        assert_allclose(wide(found, "high")[:, k], expected + 1.96 * deviation, rtol=1e-9)
        assert_allclose(wide(found, "residual")[:, k], new[name] - expected, rtol=1e-6, atol=1e-7)
        assert_allclose(wide(found, "deviations")[:, k] * deviation, new[name] - expected, rtol=1e-6, atol=1e-7)


def test_a_sensor_that_the_data_lack_is_predicted(model: eccaht.Model) -> None:
    new = readings(100, 2)
    found = model.predict(new.drop(columns="heat"), missing="allow")
    expected, _ = conditional(model, new.to_numpy(), 2, [0, 1, 3])
    assert_allclose(wide(found, "expected")[:, 2], expected, rtol=1e-9)
    assert np.isnan(wide(found, "read")[:, 2]).all()


def test_times_are_as_in_the_data(model: eccaht.Model) -> None:
    new = readings(60, 3)
    assert model.predict(new, start="2024-01-01 00:50").time.unique().tolist() == new.index[50:].tolist()
    assert model.predict(new.tz_localize("Europe/Berlin")).time[0] == pd.Timestamp("2023-12-31 23:00", tz="UTC")
    counted = eccaht.calibrate(readings(600, 0).to_numpy(), names=NAMES, drills=0)
    assert counted.predict(new.to_numpy()).row.tolist() == np.repeat(np.arange(1, 61), 4).tolist()


def test_without_pandas_the_frame_is_of_polars(model: eccaht.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eccaht.base.frames.find_spec", lambda _: None)
    found = model.predict(pl.from_pandas(readings(10, 4).reset_index()))
    assert isinstance(found, pl.DataFrame)
    assert found["time"].dtype == pl.Datetime("us")


def test_what_cannot_be_predicted_is_refused(model: eccaht.Model) -> None:
    with pytest.raises(ValueError, match="no sensor 'levels'"):
        model.predict(readings(10, 5), wrong="levels")
    short = eccaht.calibrate(readings(30, 0), drills=0, window="1min")
    with pytest.raises(ValueError, match="at least 40 windows"):
        short.predict(readings(10, 5))
