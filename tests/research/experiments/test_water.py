"""Attacks on the water network are what the truth file says, and correlation is what finds them."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from eccaht.plants.model.model import load_model
from eccaht.research.datasets.water import simulate
from eccaht.research.experiments.localisation import arrival_times, savings
from eccaht.research.experiments.water import EVERY, LENGTH, NUMBERS, WaterOutcome, WaterSettings, run

pytestmark = pytest.mark.skipif(find_spec("wntr") is None, reason="the extra [water] is not installed")

QUICK = WaterSettings(days=2.0, step=300.0, window=300.0, attacks=6, shift=2.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("water")


@pytest.fixture(scope="module")
def outcome(place: Path) -> WaterOutcome:
    return run(place, ("ecc-aht", "diagonal"), QUICK)


def test_files_are_history_attacks_truth_and_model(outcome: WaterOutcome, place: Path) -> None:
    assert [path.name for path in outcome.files] == ["history.csv", "attacks.csv", "truth.json", "model.npz"]
    assert sorted(path.name for path in place.iterdir()) == sorted(path.name for path in outcome.files)
    history = pl.read_csv(place / "history.csv")
    assert len(history) == 2 * 288
    model = load_model(place / "model.npz")
    assert model.names == outcome.model.names
    assert json.loads((place / "truth.json").read_text())[0]["sensors"] == list(outcome.attacks[0].sensors)


def test_attacked_readings_are_the_simulated_ones_plus_the_bias(outcome: WaterOutcome, place: Path) -> None:
    total = QUICK.days + (QUICK.attacks * EVERY + LENGTH) / 86_400
    clean = simulate(days=total, step=300.0, seed=0)
    history = pl.read_csv(place / "history.csv")
    attacked = pl.read_csv(place / "attacks.csv", try_parse_dates=True)
    expected = clean.values[len(history) :].copy()
    times = attacked["time"].to_numpy().astype("datetime64[us]")
    for each in outcome.attacks:
        rows = (times >= each.start) & (times < each.end)
        assert rows.sum() == LENGTH / 300
        for sensor, bias in zip(each.sensors, each.bias, strict=True):
            column = history[sensor].to_numpy()
            assert bias == pytest.approx(2.0 * np.subtract(*np.quantile(column, [0.75, 0.25])))
            expected[rows, clean.names.index(sensor)] += bias
    np.testing.assert_allclose(attacked.drop("time").to_numpy(), expected, atol=5e-5)


def test_attacks_stand_apart_and_take_turns(outcome: WaterOutcome) -> None:
    assert [len(each.sensors) for each in outcome.attacks] == [NUMBERS[k % 3] for k in range(6)]
    for earlier, later in zip(outcome.attacks, outcome.attacks[1:], strict=False):
        assert later.start - earlier.start == np.timedelta64(EVERY, "s")
        assert earlier.end < later.start
    assert list(outcome.records) == ["1 sensor", "2 sensors", "3 sensors"]
    assert all(records.hits["ecc-aht"].shape == (2, LENGTH // 300) for records in outcome.records.values())


def test_a_sensor_remembers_longer_than_what_the_others_do_not_explain(outcome: WaterOutcome) -> None:
    assert outcome.memory["sensors"] > 0.9
    assert outcome.memory["residuals"] < 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"days": 0.5}, "do not cover a day"),
        ({"window": 100.0}, "must be between the step of 300 s and half an hour"),
        ({"attacks": 0}, "attacks must be a whole number"),
        ({"shift": 0.0}, "shift must be positive"),
    ],
)
def test_settings_are_checked(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(QUICK, **change)  # type: ignore[arg-type]


@pytest.mark.slow
def test_full_covariance_pays(tmp_path: Path) -> None:
    outcome = run(tmp_path, ("ecc-aht", "diagonal"), replace(QUICK, days=7.0, attacks=30, shift=1.0), jobs=2)
    (saved,) = savings(arrival_times(outcome.records["1 sensor"]), seed=0)
    assert saved.more.interval is not None
    assert saved.more.interval[0] > 0
