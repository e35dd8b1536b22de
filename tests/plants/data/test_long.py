"""A long table, one reading a row, is the same data as the wide one, however it is exported."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import eccaht
from eccaht.plants.data.source import read_table

ROWS = 120
TIMES = pd.date_range("2024-03-01", periods=ROWS, freq="10s", name="time")
WIDE = pd.DataFrame(np.random.default_rng(0).normal(50, 1, (ROWS, 3)).round(3), TIMES, ["T1", "F2", "P3"])
LONG = WIDE.reset_index().melt("time", var_name="tag", value_name="value")


def same_as_wide(data: Any, *, tags: list[str] | None = None) -> tuple[str, ...]:
    found, wide = read_table(data), read_table(WIDE)
    assert list(found.names) == (tags or ["T1", "F2", "P3"])
    np.testing.assert_array_equal(found.times, wide.times)
    for name in found.names:
        np.testing.assert_array_equal(found.numbers(name), wide.numbers(name))
    return found.notes


def exported(path: Path, frame: pd.DataFrame, **options: Any) -> Path:
    frame.to_csv(path, index=False, **options)
    return path


def test_every_way_to_give_one_is_read_and_said(tmp_path: Path) -> None:
    pl.DataFrame(LONG.to_dict("list")).write_parquet(tmp_path / "long.parquet")
    ways: dict[str, Any] = {
        "frame": LONG,
        "index of times": LONG.set_index("time"),
        "polars": pl.DataFrame(LONG.to_dict("list")),
        "csv": exported(tmp_path / "long.csv", LONG),
        "gzip": exported(tmp_path / "long.csv.gz", LONG),
        "parquet": tmp_path / "long.parquet",
    }
    for name, data in ways.items():
        assert "is a long table: the 3 values of 'tag' were made columns" in same_as_wide(data)[0], name


@pytest.mark.parametrize("names", [("sensor", "reading"), ("variable", "value"), ("TagName", "Value"), ("tag", "x")])
def test_columns_are_known_by_their_names(names: tuple[str, str]) -> None:
    same_as_wide(LONG.set_axis(["time", *names], axis=1))


def test_a_historian_with_decimal_commas_two_columns_of_time_and_a_quality(tmp_path: Path) -> None:
    date, clock = LONG.time.dt.strftime("%d.%m.%Y"), LONG.time.dt.strftime("%H:%M:%S")
    frame = pd.DataFrame({"Date": date, "Time": clock, "Tag": LONG.tag, "Value": LONG.value, "Quality": "Good"})
    path = exported(tmp_path / "export.csv", frame.sample(frac=1.0, random_state=0), sep=";", decimal=",")
    notes = same_as_wide(path, tags=list(read_table(path).names))
    assert "not used: Quality" in notes[0]
    assert any("commas are decimal points" in note for note in notes)


def test_a_file_for_each_tag_is_one_table(tmp_path: Path) -> None:
    same_as_wide([exported(tmp_path / f"{tag}.csv", LONG[LONG.tag == tag]) for tag in WIDE])


def test_words_are_missing_and_the_last_of_two_readings_counts() -> None:
    frame = LONG.astype({"value": object})
    frame.loc[5, "value"] = "Bad Input"
    again = pd.DataFrame({"time": [TIMES[7]], "tag": ["T1"], "value": [99.0]})
    table = read_table(pd.concat([frame, again]))
    assert np.isnan(table.numbers("T1")[5])
    assert table.numbers("T1")[7] == 99.0
    assert any("1 'Bad Input'" in note for note in table.notes)


def test_tags_with_times_of_their_own_make_one_model(tmp_path: Path) -> None:
    shift = LONG.tag.map({"T1": 0.0, "F2": 3.1, "P3": 7.7})
    frame = LONG.assign(time=LONG.time + pd.to_timedelta(shift, unit="s"))
    model = eccaht.calibrate(exported(tmp_path / "own.csv", frame), drills=0, window="10s", progress=False)
    wide = eccaht.calibrate(WIDE, drills=0, window="10s", progress=False)
    assert any("one row of 3: windows" in note for note in model.notes)
    assert model.names == wide.names
    windows = model.prepare(exported(tmp_path / "again.csv", frame))
    np.testing.assert_allclose(model.raw(windows.values), WIDE, atol=1e-9)


@pytest.mark.parametrize(
    "frame",
    [
        WIDE.reset_index(),
        WIDE[["T1"]].reset_index().assign(mode="on"),
        pd.DataFrame({"time": TIMES, "signal": WIDE.T1.array, "value": WIDE.F2.array}),  # two sensors
        LONG.assign(speed=1.5),
    ],
)
def test_wide_tables_are_left_alone(frame: pd.DataFrame) -> None:
    table = read_table(frame)
    assert list(table.names) == list(frame)[1:]
    assert not any("long table" in note for note in table.notes)


def test_a_tag_called_like_the_times_is_refused() -> None:
    with pytest.raises(ValueError, match="name of the column of times"):
        read_table(LONG.replace({"tag": {"T1": "time"}}))
