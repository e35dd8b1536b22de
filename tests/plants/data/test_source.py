"""One door: files, frames and arrays with the same rows are the same history and the same new data."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from eccaht.base.clock import Clock
from eccaht.checks import check_source
from eccaht.plants.data.source import Arrays, read_table
from eccaht.plants.data.windows import Batch
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from tests.plants.model.histories import clock, signals, write_csv

NAMES = ["a", "b", "c"]
VALUES = signals(900, 3)
TIMES = np.array(clock(900), dtype="datetime64[us]")
MODES = ["AUTO" if k // 50 % 3 else "MANUAL" for k in range(900)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("door") / "h.csv"
    return write_csv(path, ["time", *NAMES, "mode"], [clock(900), *VALUES.T.tolist(), MODES])


@pytest.fixture(scope="module")
def model(file: Path) -> Model:
    return calibrate(file, window="1min")


def forms() -> dict[str, Any]:
    codes = np.array([["AUTO", "MANUAL"].index(mode) for mode in MODES], dtype=float)
    columns = {"time": TIMES, **dict(zip(NAMES, VALUES.T, strict=True)), "mode": MODES}
    frame = pd.DataFrame(columns)
    levels = {"mode": ["AUTO", "MANUAL"]}
    return {
        "arrays": Arrays(np.column_stack([VALUES, codes]), TIMES, [*NAMES, "mode"], levels=levels),
        "polars": pl.DataFrame(columns),
        "pandas": frame,
        "pandas by time": frame.set_index("time"),
        "pandas, categories": frame.astype({"mode": "category", "a": "Float64"}),
        "pandas, texts": frame.astype({"time": str}),
    }


@pytest.mark.parametrize("form", forms())
def test_the_same_rows_are_the_same_model_and_windows(form: str, file: Path, model: Model) -> None:
    data = forms()[form]
    other = calibrate(data, window="1min")
    assert other.names == model.names
    assert [column.as_dict() for column in other.columns] == [column.as_dict() for column in model.columns]
    np.testing.assert_array_equal(other.covariance.dense(), model.covariance.dense())
    np.testing.assert_array_equal(other.gaps, model.gaps)
    for preparing in (model, other):
        windows, expected = preparing.prepare(data), model.prepare(file)
        np.testing.assert_array_equal(windows.starts, expected.starts)
        np.testing.assert_array_equal(windows.values, expected.values)
    np.testing.assert_array_equal(other.prepare(file).values, expected.values)


def test_options_mean_the_same_for_frames_and_arrays(file: Path) -> None:
    options: dict[str, Any] = {"exclude": ["mode"], "start": "2017-09-25T18:05", "timezone": "Europe/Berlin"}
    one, *others = (calibrate(data, **options) for data in (file, forms()["polars"], forms()["arrays"]))
    assert one.names == ("a", "b", "c")
    assert one.clock.zone == "Europe/Berlin"
    for other in others:
        assert other.names == one.names
        assert (other.first, other.last) == (one.first, one.last)
        np.testing.assert_array_equal(other.covariance.dense(), one.covariance.dense())


def test_times_with_a_zone_are_kept() -> None:
    times = pd.DatetimeIndex(TIMES).tz_localize("UTC").tz_convert("Asia/Kolkata")
    table = read_table(pd.DataFrame(VALUES, index=times, columns=NAMES))
    assert table.clock.zone == "Asia/Kolkata"
    np.testing.assert_array_equal(table.times, TIMES)
    shown = read_table(Arrays(VALUES, TIMES, NAMES, zone="Asia/Kolkata"))
    assert (shown.clock, shown.times[0]) == (table.clock, table.times[0])


def test_rows_without_times_are_counted_or_so_far_apart() -> None:
    by_rows, by_time = calibrate(VALUES, window="60rows"), calibrate(VALUES, row_interval="1s", window="1min")
    np.testing.assert_array_equal(by_rows.covariance.dense(), by_time.covariance.dense())
    assert by_rows.names == ("c1", "c2", "c3")
    assert by_rows.clock.counted
    np.testing.assert_array_equal(by_time.prepare(VALUES[:130]).values, by_rows.prepare(VALUES[:130]).values)
    assert len(by_rows.prepare(VALUES[:130]).starts) == 3


class Every:
    """A source without times, whose rows are so many seconds apart."""

    def __init__(self, seconds: float) -> None:
        self.names, self.clock, self._rows = (
            tuple(NAMES),
            Clock(row_interval=seconds),
            Arrays(VALUES, row_interval=seconds),
        )

    def batches(self) -> Iterator[Batch]:
        return self._rows.batches()


def test_a_source_that_knows_its_row_interval_needs_no_option() -> None:
    assert check_source(Every(10.0)) == {}
    own, given = calibrate(Every(10.0)), calibrate(VALUES, row_interval="10s")
    assert own.seconds == given.seconds
    np.testing.assert_allclose(own.covariance.dense(), given.covariance.dense(), rtol=1e-12)
    np.testing.assert_allclose(own.prepare(Every(10.0)).values, given.prepare(VALUES).values, rtol=1e-12)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (VALUES, "the array has no times: give them, .* or a window like 60rows"),
        (VALUES[0], "must have rows and columns"),
        (np.array([["x"]]), "must hold real numbers"),
        (pd.DataFrame({"time": [], "a": []}), "the frame has no rows"),
        (pd.DataFrame(VALUES, columns=NAMES), "no time column found in the frame"),
        (pl.DataFrame({"time": TIMES, "a": [[1.0]] * 900}), "is of type List.*exclude it"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns named 'a'"),
        ([], "give at least one file"),
        (None, "data must be paths of files, .* or one Source, not NoneType"),
        (5, "data must be paths of files, .*, not int"),
        ([[1.0, 2.0]], "data must be paths of files, .* one array, .*, not a list of list"),
        ([pd.DataFrame({"time": TIMES, "a": VALUES[:, 0]})], "data must be .* one frame .*, not a list of DataFrame"),
        ({"time": TIMES, "a": VALUES[:, 0]}, "data must be paths of files, .*, not dict"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(data: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        calibrate(data, window="1min")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"names": ["a", "b"]}, "has 3 columns and needs as many names"),
        ({"names": ["a", "b", "b"]}, "must be distinct"),
        ({"names": ["a", "b", "time"], "times": TIMES}, "'time' is that of the times"),
        ({"times": TIMES[1:]}, "the times must be 900"),
        ({"times": np.arange(900) / 2}, "must be datetime64"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Arrays(VALUES, **options)


def test_arrays_need_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    model = calibrate(Arrays(VALUES, TIMES, NAMES), estimator="empirical", window="1min")
    assert len(model.prepare(Arrays(VALUES, TIMES, NAMES)).starts) == 15
