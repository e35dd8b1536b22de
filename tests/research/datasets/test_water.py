"""The simulated network behaves as documented."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from eccaht.research.datasets import water
from eccaht.research.datasets.water import (
    DEMAND_RANGE,
    DEMAND_SPREAD,
    FIRST,
    WaterRecording,
    check_step,
    demand_factors,
)

pytestmark = pytest.mark.skipif(find_spec("wntr") is None, reason="the extra [water] is not installed")


@pytest.fixture(scope="module")
def recording() -> WaterRecording:
    return water.simulate(days=1.5, step=300, seed=3)


def test_sensors_are_pressures_flows_and_levels(recording: WaterRecording) -> None:
    assert recording.values.shape == (432, len(recording.names))
    assert np.isfinite(recording.values).all()
    kinds = [name[0] for name in recording.names]
    assert {kind: kinds.count(kind) for kind in "PL"} == {"P": 46, "L": 3}
    assert kinds.count("F") > 10
    assert {"F-10", "F-335"} <= set(recording.names)  # both pumps
    assert recording.times[0] == FIRST
    assert (np.diff(recording.times) == np.timedelta64(300, "s")).all()
    pressures = recording.values[:, [kind == "P" for kind in kinds]]
    assert np.median(pressures) == pytest.approx(42.0, abs=4.0)  # metres, the order of Net3


def test_the_pump_runs_on_after_the_week_of_the_networks_file() -> None:
    recording = water.simulate(days=8.4, step=600)
    flow = recording.values[:, recording.names.index("F-10")]
    assert flow[-40:].min() > 50.0  # from 3 to half past nine on the ninth day


def test_the_same_seed_is_the_same_world(recording: WaterRecording) -> None:
    again, other = (water.simulate(days=1.5, step=300, seed=seed) for seed in (3, 4))
    np.testing.assert_array_equal(again.values, recording.values)
    assert not np.array_equal(other.values, recording.values)


def test_demand_has_the_spread_and_the_correlation_that_are_documented() -> None:
    places = np.array([[0.0, 0.0], [DEMAND_RANGE * 10, 0.0], [10.0, 0.0]])
    factors = demand_factors(places, 60_000, np.random.default_rng(0))
    logs = np.log(factors)
    assert factors.mean() == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(logs.std(axis=0), DEMAND_SPREAD, rtol=0.03)
    R = np.corrcoef(logs.T)
    assert R[0, 1] == pytest.approx(np.exp(-1), abs=0.05)
    assert R[0, 2] == pytest.approx(np.exp(-5), abs=0.05)
    assert np.corrcoef(logs[1:, 0], logs[:-1, 0])[0, 1] == pytest.approx(np.exp(-1 / 6), abs=0.02)  # an hour's memory


def test_recordings_are_saved_and_cut(recording: WaterRecording, tmp_path: Path) -> None:
    part = recording.part(10, 20)
    table = pl.read_csv(part.save(tmp_path / "a.csv"), try_parse_dates=True)
    assert table.columns == ["time", *recording.names]
    np.testing.assert_allclose(table.drop("time").to_numpy(), part.values, atol=5e-5)
    assert table["time"].to_list()[0] == part.times[0].item()


@pytest.mark.parametrize("step", [0.0, 7.0, 450.0, 1200.0])
def test_steps_that_do_not_fit_are_refused(step: float) -> None:
    with pytest.raises(ValueError, match="is no whole part of 10 minutes"):
        check_step(step)
