"""A history becomes a model by the steps of the paper; new data is prepared by the same."""

import statistics
from pathlib import Path

import numpy as np
import pytest

from eccaht.base.clock import Clock
from eccaht.plants.model.calibration import calibrate, calibrate_with_windows
from eccaht.plants.model.fitting import FEWEST_NORMAL
from eccaht.plants.model.model import Model, load_model
from tests.plants.model.histories import START, clock, history, signals, write_csv


def minutes(values: list[float], size: int = 60) -> list[float]:
    return [statistics.fmean(values[k : k + size]) for k in range(0, len(values), size)]


def test_a_small_history_by_hand(tmp_path: Path) -> None:
    """Every number of the model from plain Python on the same table."""
    rows = 1200
    a, b = signals(rows, 2).T.tolist()
    valve = ["ON" if (k // 100) % 3 else "OFF" for k in range(rows)]
    path = write_csv(
        tmp_path / "h.csv",
        ["time", "a", "b", "valve", "pump", "empty", "same"],
        [
            clock(rows),
            ["" if k == 7 else x for k, x in enumerate(a)],
            b,
            valve,
            [int(k == 5) for k in range(rows)],
            [""] * rows,
            [3] * rows,
        ],
    )
    model = calibrate(path, estimator="empirical", window="1min")
    a[7] = (a[6] + a[8]) / 2
    codes = [float(text == "ON") for text in valve]
    pump = [float(k == 5) for k in range(rows)]
    expected = []
    for column in (a, b, codes, pump):
        low, middle, high = statistics.quantiles(column, n=4, method="inclusive")
        scale = high - low or statistics.pstdev(column)
        expected.append([(x - middle) / scale for x in minutes(column)])
    assert model.names == ("a", "b", "valve", "pump")
    assert model.mean == pytest.approx(np.mean(expected, axis=1))
    assert model.covariance.dense() == pytest.approx(np.cov(expected) + 1e-6 * np.eye(4))
    assert (model.n_windows, model.seconds, model.first) == (20, 60.0, START)
    assert model.reading["levels"] == {"valve": ["OFF", "ON"]}
    said = {c.name: (c.kept, c.reason, c.kind, round(c.imputed, 6), c.scaled_by) for c in model.columns}
    assert said == {
        "time": (False, "time", "", 0, ""),
        "a": (True, "", "continuous", round(1 / 1200, 6), "iqr"),
        "b": (True, "", "continuous", 0, "iqr"),
        "valve": (True, "", "status", 0, "iqr"),
        "pump": (True, "", "status", 0, "std"),
        "empty": (False, "empty", "", 1, ""),
        "same": (False, "constant", "status", 0, ""),
    }
    low, middle, high = statistics.quantiles(b, n=4, method="inclusive")
    assert (model.center[1], model.scale[1]) == pytest.approx((middle, high - low))


def test_columns_that_are_no_sensors_are_dropped_with_a_reason(tmp_path: Path) -> None:
    rows = 900
    columns = [
        clock(rows),
        range(1, rows + 1),
        [f"remark {k}" for k in range(rows)],
        [k % 60 for k in range(rows)],
        *signals(rows, 2).T.tolist(),
    ]
    path = write_csv(tmp_path / "h.csv", ["time", "Row", "remark", "second", "a", "b"], columns)
    model = calibrate(path, window="1min")
    reasons = {column.name: column.reason for column in model.columns}
    assert reasons == {
        "time": "time",
        "Row": "row number",
        "remark": "text",
        "second": "constant in windows",
        "a": "",
        "b": "",
    }
    assert {c.name: c.reason for c in calibrate(path, exclude=["Row"], window="1min").columns}["Row"] == "excluded"


def test_windows_with_few_rows_do_not_count(tmp_path: Path) -> None:
    rows = 60 * 12 + 20
    path = write_csv(tmp_path / "h.csv", ["time", "a", "b"], [clock(rows), *signals(rows, 2).T.tolist()])
    model = calibrate(path, window="1min")
    assert model.n_windows == 12
    assert any("1 window" in note for note in model.reading["notes"])


def test_a_gap_in_time_makes_no_windows(tmp_path: Path) -> None:
    t = [*clock(600), *(str(np.datetime64("2017-09-30T00:00:00") + np.timedelta64(k, "s")) for k in range(600))]
    path = write_csv(tmp_path / "h.csv", ["time", "a", "b"], [t, *signals(1200, 2).T.tolist()])
    model = calibrate(path, window="1min")
    assert model.n_windows == 20
    assert model.last == np.datetime64("2017-09-30T00:09")


def test_start_and_stop_and_progress(tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []
    path = history(tmp_path / "h.csv", 1800)
    model = calibrate(
        path, window="1min", start="2017-09-25T18:05", stop="2017-09-25T18:25", progress=lambda *now: seen.append(now)
    )
    assert (model.first, model.n_windows) == (np.datetime64("2017-09-25T18:05"), 20)
    assert [share for share, _ in seen] == sorted(share for share, _ in seen)


@pytest.mark.parametrize("window", ["0.5s", "x"])
def test_windows_must_hold_rows(window: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="window"):
        calibrate(history(tmp_path / "h.csv", 100), window=window)


# -- new data ------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path: Path) -> Model:
    rows = 1200
    names = ["time", "a", "b", "valve"]
    valve = ["ON" if (k // 100) % 3 else "OFF" for k in range(rows)]
    return calibrate(
        write_csv(tmp_path / "h.csv", names, [clock(rows), *signals(rows, 2).T.tolist(), valve]), window="1min"
    )


def test_the_history_itself_prepared_again_has_the_model_s_mean(model: Model, tmp_path: Path) -> None:
    windows = model.prepare(tmp_path / "h.csv")
    assert windows.names == model.names
    assert windows.values.mean(axis=0) == pytest.approx(model.mean)
    assert windows.seconds == 60.0


def test_columns_are_matched_by_name(model: Model, tmp_path: Path) -> None:
    t, (a, b) = clock(120), signals(120, 2, seed=5).T.tolist()
    valve = ["ON"] * 120
    straight = write_csv(tmp_path / "1.csv", ["time", "a", "b", "valve"], [t, a, b, valve])
    turned = write_csv(tmp_path / "2.csv", ["new", "valve", "b", "time", r"\\X\a"], [b, valve, b, t, a], ";")
    assert np.array_equal(model.prepare(straight).values, model.prepare(turned).values)


def test_absent_sensors_are_refused_by_name_or_allowed(model: Model, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "n.csv", ["time", "b"], [clock(60), [1.0] * 60])
    with pytest.raises(ValueError, match="'a', 'valve'"):
        model.prepare(path)
    windows = model.prepare(path, missing="allow")
    assert np.isnan(windows.values).tolist() == [[True, False, True]]
    assert windows.values[0, 1] == pytest.approx((1.0 - model.center[1]) / model.scale[1])
    with pytest.raises(ValueError, match="no column for 3"):
        model.prepare(write_csv(tmp_path / "o.csv", ["time", "x"], [clock(60), [1.0] * 60]), missing="allow")


def test_gaps_are_not_filled(model: Model, tmp_path: Path) -> None:
    a = [""] * 60 + ["4.0", *[""] * 59]
    path = write_csv(
        tmp_path / "n.csv", ["time", "a", "b", "valve"], [clock(120), a, [1.0] * 120, [""] * 90 + ["ON"] * 30]
    )
    values = model.prepare(path).values
    assert np.isnan(values[0]).tolist() == [True, False, True]
    assert values[1, 0] == pytest.approx((4.0 - model.center[0]) / model.scale[0])
    assert values[1, 2] == pytest.approx((1.0 - model.center[2]) / model.scale[2])


def test_status_texts_keep_their_codes(model: Model, tmp_path: Path) -> None:
    numbers = signals(60, 2).T.tolist()
    only_on = write_csv(tmp_path / "1.csv", ["time", "a", "b", "valve"], [clock(60), *numbers, ["ON"] * 60])
    assert model.prepare(only_on).values[0, 2] == pytest.approx((1.0 - model.center[2]) / model.scale[2])
    for text in ("FAULT", "1"):
        odd = write_csv(tmp_path / "2.csv", ["time", "a", "b", "valve"], [clock(60), *numbers, [text] * 60])
        with pytest.raises(ValueError, match=text):
            model.prepare(odd)
    odd = write_csv(tmp_path / "2.csv", ["time", "a", "b", "valve"], [clock(60), ["on"] * 60, numbers[1], ["ON"] * 60])
    with pytest.raises(ValueError, match="texts"):
        model.prepare(odd)


def test_dates_are_read_as_in_the_history(tmp_path: Path) -> None:
    """October 9 in a file that alone could also be September 10."""
    t = [f"{9 + k // 1440}/10/2017 {k // 60 % 24:02d}:{k % 60:02d}" for k in range(7 * 1440)]
    numbers = signals(len(t), 2).T.tolist()
    model = calibrate(write_csv(tmp_path / "h.csv", ["t", "a", "b"], [t, *numbers]), time_column="t", window="1h")
    assert model.first == np.datetime64("2017-10-09")
    new = write_csv(tmp_path / "n.csv", ["t", "a", "b"], [["9/10/2017 00:00", "9/10/2017 00:01"], [1, 2], [1, 2]])
    assert model.prepare(new).starts[0] == np.datetime64("2017-10-09")


def test_rows_without_times_are_counted(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "h.csv", ["a", "b"], signals(600, 2).T.tolist())
    model = calibrate(path, row_interval="1s", window="10s")
    windows = model.prepare(path, start="21")
    assert (model.n_windows, len(windows.starts)) == (60, 58)
    assert model.clock.show(windows.starts[0]) == "row 21"
    assert model.clock.length(windows.seconds) == "10s"
    assert len(windows.between("row 31", 41).starts) == 1
    with pytest.raises(ValueError, match="number of a row"):
        model.prepare(path, start="2017-09-25")


def test_windows_of_rows_where_nothing_is_known_of_time(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "h.csv", ["a", "b"], signals(600, 2).T.tolist())
    with pytest.raises(ValueError, match=r"no time column found .*--window 60rows"):
        calibrate(path, window="10s")
    counted = calibrate(path, window="10rows")
    timed = calibrate(path, row_interval="1s", window="10s")
    assert np.array_equal(counted.covariance.dense(), timed.covariance.dense())
    counted.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.clock == counted.clock == Clock(row_interval=1.0, counted=True)
    assert np.array_equal(again.prepare(path, stop=101).values, timed.prepare(path, stop=101).values)
    with pytest.raises(ValueError, match="has times"):
        calibrate(write_csv(tmp_path / "t.csv", ["time", "a"], [clock(60), range(60)]), window="10rows")
    with pytest.raises(ValueError, match="leave out the time zone"):
        calibrate(path, window="10rows", timezone="UTC")


def test_a_mixed_status_is_known_by_its_numbers_too(tmp_path: Path) -> None:
    rows = 900
    mode = [("1", "2", "AUTO")[k // 10 % 3] for k in range(rows)]
    numbers = signals(rows, 2).T.tolist()
    model = calibrate(
        write_csv(tmp_path / "h.csv", ["time", "a", "b", "mode"], [clock(rows), *numbers, mode]), window="7s"
    )
    new = write_csv(
        tmp_path / "n.csv", ["time", "a", "b", "mode"], [clock(7), *(n[:7] for n in numbers), ["", *["2"] * 6]]
    )
    values = model.prepare(new).values
    assert values[-1, 2] == pytest.approx((1.0 - model.center[2]) / model.scale[2])


# -- normal operation ----------------------------------------------------------------------------------


def test_the_windows_handed_out_are_those_that_new_data_give(tmp_path: Path) -> None:
    columns = [clock(1800), *signals(1800, 3).T.tolist()]
    columns[2][600:660] = [5.0] * 60
    columns[3][70] = ""
    path = write_csv(tmp_path / "h.csv", ["time", "a", "b", "c"], columns)
    model, windows = calibrate_with_windows(path, window="30s")
    again = model.prepare(path)
    assert np.array_equal(windows.starts, again.starts)
    for part in ("rows", "flat"):
        assert np.array_equal(getattr(windows, part), getattr(again, part))
    assert windows.flat is not None
    assert windows.flat[20:22, 1].all()
    gap = np.zeros(windows.values.shape, dtype=bool)
    gap[2, 2] = True  # filled in the history, left out of the mean in new data
    assert windows.values[~gap] == pytest.approx(again.values[~gap], rel=1e-9, abs=1e-12)
    assert windows.model is model


def test_a_history_that_is_too_short_has_a_covariance_alone(tmp_path: Path) -> None:
    model = calibrate(history(tmp_path / "h.csv", rows=FEWEST_NORMAL - 1, step=60))
    assert model.normal is None
    assert model.covariance.size == 4


@pytest.mark.parametrize("rows", [FEWEST_NORMAL, 60, 100, 333])
def test_normal_operation_is_fitted_to_short_histories(rows: int, tmp_path: Path) -> None:
    model = calibrate(history(tmp_path / "h.csv", rows=rows, step=60))
    assert model.n_windows == rows
    assert model.normal is not None
    assert model.normal.local is not None
    assert np.isfinite(model.normal.residuals(np.ones((2, 4)), np.zeros((2, 4))).r).all()


def test_what_is_odd_about_sensors_is_noted(tmp_path: Path) -> None:
    a, b = signals(1200, 2).T
    stuck = np.where(np.arange(1200) < 700, 3.25, b)
    columns = [clock(1200), a, b, 2.0 * a + 1.0, stuck, np.arange(1200) // 1000]
    path = write_csv(tmp_path / "h.csv", ["time", "a", "b", "copy", "stuck", "mode"], [list(c) for c in columns])
    model = calibrate(path)
    assert model.names == ("a", "b", "copy", "stuck", "mode")
    repeats, alike = model.reading["notes"]
    assert "stuck" in repeats
    assert "a = copy" in alike
