"""The decimals of readings are found as they were written, and new data that have fewer or more are named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from eccaht.base.arrays import Array
from eccaht.plants.data.windows import MOST_DECIMALS, coarser, decimals, decimals_by_name
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import load_model
from tests.plants.model.histories import clock, signals, write_csv


def written(text: str) -> int:
    """Decimals of a number as a person counts them."""
    return len(text.partition(".")[2].rstrip("0"))


@given(st.lists(st.tuples(st.integers(-(10**7), 10**7), st.integers(0, MOST_DECIMALS)), min_size=1, max_size=300))
def test_the_decimals_are_those_of_the_texts(numbers: list[tuple[int, int]]) -> None:
    texts = [f"{whole / 10**places:.{places}f}" for whole, places in numbers]
    assert decimals(np.array([float(text) for text in texts])) == max(map(written, texts))


@pytest.mark.parametrize("places", range(MOST_DECIMALS + 1))
def test_rounded_noise_has_the_decimals_it_was_rounded_to(places: int) -> None:
    noise = np.random.default_rng(places).normal(20.0, 3.0, 30_000)
    assert decimals(np.round(noise, places)) == places
    assert decimals(np.where(np.arange(30_000) % 7 == 0, np.nan, np.round(noise, places))) == places
    assert decimals(noise) is None


def test_one_fine_reading_counts_and_gaps_do_not() -> None:
    column = np.zeros(4000)
    column[3999] = 0.125
    assert decimals(column) == 3
    assert decimals(np.array([np.nan, np.inf, 2.0])) == 0
    assert decimals(np.full(9, np.nan)) is None
    assert decimals(np.array([0.1 + 0.2, 1e12 + 1])) == 1  # as exact as the arithmetic


def test_two_decimals_are_a_difference_and_one_where_the_step_shows() -> None:
    history: dict[str, int | None] = {"same": 3, "one": 3, "two": 3, "more": 0, "exact": None, "was exact": None}
    new: dict[str, int | None] = {"same": 3, "one": 2, "two": 1, "more": 2, "exact": None, "was exact": 4, "other": 1}
    assert coarser(history, new) == ("two", "was exact")
    assert coarser(new, history) == ("more",)
    assert coarser(history, new, {"one": 9.9}) == ("one", "two", "was exact")  # a step of 0.01
    assert coarser(history, new, {"one": 10.1}) == ("two", "was exact")


def test_a_few_readings_do_not_prove_that_they_are_coarse() -> None:
    few = np.round(np.random.default_rng(0).normal(size=(500, 2)), 3)
    few[:, 1] = 5.0
    few[::3, 1] = np.nan
    assert decimals_by_name(dict(zip(["a", "stuck"], few.T, strict=True))) == {"a": 3}
    assert decimals_by_name(dict(zip(["a", "stuck"], few[:5].T, strict=True))) == {}


def test_a_model_remembers_the_decimals_of_its_sensors(tmp_path: Path) -> None:
    rows = 400
    a, b = signals(rows, 2).T
    columns = [clock(rows), np.round(a, 1), ["", *b[1:]], a / 3, [("on", "off")[k // 30 % 2] for k in range(rows)]]
    calibrate(write_csv(tmp_path / "h.csv", ["time", "a", "b", "c", "mode"], columns)).save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.reading["decimals"] == {"a": 1, "b": 3, "c": None, "mode": 0}


def test_a_few_readings_are_at_least_as_fine_as_they_look() -> None:
    rng = np.random.default_rng(4)
    history = frame(busy=np.round(rng.normal(20.0, 3.0, 200), 1), still=rng.normal(1.0, 0.1, 200))
    new = frame(busy=np.round(rng.normal(20.0, 3.0, 60), 1), still=np.where(np.arange(60) < 30, 1.0625, 1.125))
    found = calibrate(history, window="1rows").prepare(new).decimals
    assert found == {"busy": 1, "still": 4}


@pytest.mark.parametrize("seed", range(8))
def test_calm_readings_that_are_rounded_are_no_reason_to_refuse(seed: int) -> None:
    """A column moves by far less than the step to which the others are rounded, and rests in the new data."""
    rng = np.random.default_rng(seed)
    flow = np.round(rng.normal(50.0, 10.0, 300), 2)
    plant = frame(
        flow=flow,
        pump=np.round(0.5 * flow + rng.normal(0.0, 1.0, 300), 2),
        seal=7.0 + 10.0 ** -rng.uniform(4, 9) * rng.standard_normal(300),
        once=np.where(np.arange(300) == rng.integers(200), 1e3, 1e3 + 10.0 ** -rng.uniform(3, 9)),
    )
    plant.loc[200:, "seal"] = 7.0
    answer = calibrate(plant[:200], window="1rows").identify(plant[200:], progress=False)
    assert answer.n_windows == 100


def frame(**columns: Array) -> pd.DataFrame:
    return pd.DataFrame(columns)
