"""Frames as newcomers have them: numbers in text, decimal commas, numbered columns and any index of times."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import eccaht

K, ROWS = 4, 600


def plant(rows: int = ROWS, seed: int = 0, start: str = "2024-03-01") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = 50.0 + rng.standard_normal((rows, K)) @ (np.eye(K) + 0.5)
    times = pd.date_range(start, periods=rows, freq="10s", name="time")
    return pd.DataFrame(values.round(3), times, ["T1", "F2", "P3", "L4"])


def calibrate(data: Any, **options: Any) -> eccaht.Model:
    return eccaht.calibrate(data, drills=0, progress=False, **options)


def with_commas(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.map(lambda value: f"{value:.3f}".replace(".", ","))


def with_one(text: str) -> pd.DataFrame:
    frame = plant().astype({"L4": object})
    frame.iloc[7, 3] = text
    return frame


HISTORY = plant()
MODEL = calibrate(HISTORY)
INCIDENT = plant(300, 1, "2024-03-05")
INCIDENT.iloc[100:, 1] += 9.0
SECONDS = HISTORY.index.astype("datetime64[s]").astype("int64")


def same_model(found: eccaht.Model) -> None:
    np.testing.assert_allclose(found.mean, MODEL.mean, rtol=1e-12)
    assert (found.seconds, found.first, found.last) == (MODEL.seconds, MODEL.first, MODEL.last)


# -- numbers in text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (HISTORY.astype(str), {}),
        (with_commas(HISTORY), {}),
        (with_commas(HISTORY), {"decimal_comma": True}),
        (pl.from_pandas(HISTORY.reset_index()).with_columns(pl.col("T1").cast(pl.String)), {}),
    ],
)
def test_numbers_in_text_are_numbers(data: Any, options: dict[str, Any]) -> None:
    same_model(calibrate(data, **options))


def test_numbers_in_the_text_of_a_parquet_file_are_numbers(tmp_path: Any) -> None:
    path = tmp_path / "history.parquet"
    pl.DataFrame(with_commas(HISTORY).reset_index().to_dict("list")).write_parquet(path)
    same_model(calibrate(path))


@pytest.mark.parametrize("options", [{}, {"decimal_comma": True}])
def test_an_incident_with_decimal_commas_is_the_same_incident(options: dict[str, Any]) -> None:
    found, usual = MODEL.identify(with_commas(INCIDENT), progress=False, **options), MODEL.identify(INCIDENT)
    assert found.named == usual.named == ("F2",)
    assert found.onset == usual.onset


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (with_one("broken"), {}, "row 8 of the frame: 'broken' in column 'L4' is no number: mend it"),
        (with_commas(HISTORY), {"decimal_comma": False}, "add decimal_comma=True if commas are decimal points"),
        (HISTORY.astype(str), {"decimal_comma": True}, "add decimal_comma=False if commas are not decimal points"),
    ],
)
def test_a_text_that_is_no_number_is_named(data: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        calibrate(data, **options)
    assert "--" not in str(error.value)


def test_what_historians_write_for_no_reading_is_a_gap_as_in_files() -> None:
    assert [column.imputed for column in calibrate(with_one("Bad")).columns][-1] == 1 / ROWS


# -- columns with numbers for names ------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "names"), [({"exclude": [3]}, ("0", "1", "2")), ({"columns": [1, 2]}, ("1", "2"))])
def test_columns_may_be_numbered(options: dict[str, Any], names: tuple[str, ...]) -> None:
    assert calibrate(HISTORY.set_axis(range(K), axis=1), **options).names == names


def test_columns_may_be_chosen_by_an_index_of_pandas() -> None:
    assert calibrate(HISTORY, columns=HISTORY.columns[:2]).names == ("T1", "F2")


# -- times -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [
        HISTORY.index.astype(str),
        HISTORY.index.strftime("%d.%m.%Y %H:%M:%S").rename("Datum"),
        HISTORY.index.astype(object).rename(None),
        HISTORY.index.to_period("s"),
        SECONDS,
        SECONDS.rename("epoch"),
        SECONDS.astype(str).rename(None),
        SECONDS.rename(None) * 1000,
    ],
)
def test_an_index_of_times_is_found_however_it_is_written(index: Any) -> None:
    same_model(calibrate(HISTORY.set_axis(index)))


def test_a_column_of_times_in_text_is_found_by_what_it_holds() -> None:
    same_model(calibrate(HISTORY.set_axis(HISTORY.index.astype(str)).rename_axis("when").reset_index()))


@pytest.mark.parametrize("index", [range(ROWS), np.arange(ROWS) + 5000, [f"row {k}" for k in range(ROWS)]])
def test_an_index_of_anything_else_is_none_of_times(index: Any) -> None:
    found = calibrate(HISTORY.set_axis(index))
    assert found.clock.counted
    assert found.names == MODEL.names
    assert len(found.columns) == K


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: pd.concat({"one": frame}), r"MultiIndex of rows: .*\.xs\(\).*\.reset_index\(\)"),
        (lambda frame: pd.concat({"one": frame}, axis=1), r"MultiIndex of columns: .*columns\.map\('/'\.join\)"),
        (lambda frame: frame.set_axis(frame.index - frame.index[0]), r"lengths of time, .* add them to a pd.Timestamp"),
    ],
)
def test_what_an_index_does_not_say_is_asked_for(change: Callable[[pd.DataFrame], pd.DataFrame], words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        calibrate(change(HISTORY))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (INCIDENT.reset_index(drop=True), "no time column found in the frame, .*: add a column of times or a Datetime"),
        (INCIDENT.to_numpy(), "the array has no times, but the history of the model has times, .*: give times"),
    ],
)
def test_a_model_with_times_says_that_new_data_need_them(data: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        MODEL.identify(data)
    assert "--" not in str(error.value)


def test_one_row_says_nothing_about_the_time_between_rows() -> None:
    found = MODEL.identify(INCIDENT.iloc[:1], progress=False)
    assert not [text for text in (*found.cautions, *found.notes, *found.doubts) if "apart" in text]


# -- what is said of a history -----------------------------------------------------------------------------


@pytest.mark.parametrize(("windows", "short"), [(39, True), (40, False)])
def test_a_history_that_identify_will_refuse_is_noted(windows: int, short: bool) -> None:
    found = calibrate(HISTORY.iloc[:windows])
    assert found.n_windows == windows
    assert any("fewer than 40 windows: identify and watch will refuse" in note for note in found.notes) == short
    assert (found.normal is None) == short


def test_infinite_readings_are_counted_by_column() -> None:
    frame = HISTORY.copy()
    frame.iloc[5:200, 0], frame.iloc[3, 2], frame.iloc[9:12, 3] = np.inf, -np.inf, np.nan
    assert calibrate(frame).notes == ("infinite readings were taken as missing: 195 of T1, 1 of P3",)


@pytest.mark.parametrize("bad", ["Bad Input", "12,5", "-"])
def test_numbers_and_texts_in_one_column_are_read_beside_decimal_commas(bad: str) -> None:
    """As pandas leaves a column that it could not read whole with `decimal=","`."""
    frame = with_commas(HISTORY).assign(T1=HISTORY.T1.astype(object), F2=HISTORY.F2)
    frame.iloc[7, 0] = bad
    found = calibrate(frame)
    assert found.names == MODEL.names
    values = MODEL.raw(MODEL.prepare(frame).values)[:, 0]
    kept = np.arange(ROWS) != 7
    np.testing.assert_allclose(values[kept], HISTORY.T1[kept], rtol=1e-12)
    assert values[7] == 12.5 if bad == "12,5" else np.isnan(values[7])
    assert any(f"1 {bad!r}" in note for note in found.notes) == (bad != "12,5")
