"""What is written is read: in every format, notation, order and spelling of times."""

import gzip
import math
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from eccaht.plants.data.layout import MISSING
from eccaht.plants.data.lines import Faults
from eccaht.plants.data.reading import TimeRule
from eccaht.plants.data.recorded import Expected, Recorded
from eccaht.plants.data.source import read_table
from tests.plants.model.histories import START, clock, history, signals, write_csv

number = st.floats(allow_nan=False, allow_infinity=False, width=32)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.one_of(st.none(), number), number), min_size=1, max_size=30),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    end=st.sampled_from(["\n", "\r\n"]),
    lines_before=st.integers(0, 4),
    packed=st.booleans(),
)
def test_written_then_read(
    rows: list[tuple[float | None, float]], delimiter: str, end: str, lines_before: int, packed: bool, tmp_path: Path
) -> None:
    lines = [*["exported by a historian"] * lines_before, delimiter.join(["time", "a b", "c"])]
    for t, (a, c) in zip(clock(len(rows)), rows, strict=True):
        lines.append(delimiter.join([t, "" if a is None else repr(a), repr(c)]))
    data = (end.join(lines) + end).encode()
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    table = read_table(path)
    assert table.names == ("a b", "c")
    assert [None if math.isnan(x) else x for x in table.numbers("a b")] == [a for a, _ in rows]
    assert table.numbers("c").tolist() == [c for _, c in rows]
    assert table.times[0] == START
    assert len(table.times) == len(rows)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2017-09-25 18:00:00", "2017-09-25 18:00:01"),
        ("2017-09-25T18:00:00.000", "2017-09-25T18:00:01.000"),
        ("2017-09-25T18:00:00Z", "2017-09-25T18:00:01Z"),
        ("2017-09-26T02:00:00+08:00", "2017-09-26T02:00:01+08:00"),
        ("9/25/2017 6:00:00 PM", "9/25/2017 6:00:01 PM"),
        ("25/9/2017 6:00:00.000 PM", "25/9/2017 6:00:01.000 PM"),
        ("25.09.2017 18:00:00", "25.09.2017 18:00:01"),
        ("25-Sep-2017 18:00:00", "25-Sep-2017 18:00:01"),
        (" 25/09/2017 18:00:00 ", " 25/09/2017 18:00:01 "),
        ("20170925180000", "20170925180001"),
        ("1506362400", "1506362401"),
        ("1506362400000", "1506362401000"),
        ("1506362400000000", "1506362401000000"),
        ("1506362400000000000", "1506362401000000000"),
    ],
)
def test_times_in_the_usual_spellings(first: str, second: str, tmp_path: Path) -> None:
    table = read_table(write_csv(tmp_path / "t.csv", ["Timestamp", "a"], [[first, second], [1.5, 2.5]]))
    assert table.times.tolist() == [START, START + np.timedelta64(1, "s")]
    assert table.names == ("a",)
    assert table.interval == 1.0


def test_date_and_time_may_be_separate(tmp_path: Path) -> None:
    dates, hours = ["9/25/2017"] * 2, ["6:00:00.000 PM", "6:00:01.000 PM"]
    path = write_csv(tmp_path / "t.csv", ["Row", "Date ", "Time", "a"], [[1, 2], dates, hours, [1.5, 2.5]])
    table = read_table(path)
    assert table.times.tolist() == [START, START + np.timedelta64(1, "s")]
    assert table.names == ("Row", "a")
    assert read_table(path, time_column="Date,Time").times.tolist() == table.times.tolist()
    assert read_table(path, time_column=["Date", "Time"]).times.tolist() == table.times.tolist()


def test_ambiguous_dates_are_read_with_the_shorter_span_and_noted(tmp_path: Path) -> None:
    day_first = write_csv(tmp_path / "d.csv", ["t", "a"], [["9/10/2017 00:00", "10/10/2017 00:00"], [1, 2]])
    table = read_table(day_first, time_column="t")
    assert table.times[0] == np.datetime64("2017-10-09")
    assert "day first" in table.notes[0]
    month_first = write_csv(tmp_path / "m.csv", ["t", "a"], [["10/9/2017 00:00", "10/10/2017 00:00"], [1, 2]])
    table = read_table(month_first, time_column="t")
    assert table.times[0] == np.datetime64("2017-10-09")
    assert "month first" in table.notes[0]


@pytest.mark.parametrize("form", ["%d/%m/%y %H", "%Y-%m-%d %H", "%Y-%m-%dT%H", "%d.%m.%y %H", "%d-%b-%y %H"])
def test_hours_need_no_minutes(form: str, tmp_path: Path) -> None:
    """BATADAL writes 6 January 2014, midnight, as 06/01/14 00; the thirteenth says that the day comes first."""
    hours = [datetime(2014, 1, 6) + timedelta(hours=k) for k in range(200)]
    columns = [[time.strftime(form) for time in hours], range(200)]
    table = read_table(write_csv(tmp_path / "t.csv", ["DATETIME", "L_T1"], columns))
    assert table.times.tolist() == hours
    assert table.interval == 3600.0
    assert read_table(write_csv(tmp_path / "t.csv", ["when", "L_T1"], columns)).times.tolist() == hours


@pytest.mark.parametrize("text", ["06", "7.5", "06.01", "140106", "2014010600", "06/01", "14 00", "06/01/14 24"])
def test_numbers_and_parts_of_dates_are_no_times_of_hours(text: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", ["a", "b"], [[text] * 3, [1, 2, 4]])
    with pytest.raises(ValueError, match="no time column found"):
        read_table(path)


def test_a_time_column_is_found_by_what_it_holds(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", ["a", "when"], [[1, 2], clock(2)])
    assert read_table(path).rule.columns == ("when",)
    assert read_table(path).times[0] == START


def test_files_without_times_need_an_interval(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", ["a", "b"], [[1, 2, 4], [2, 1, 0]])
    with pytest.raises(ValueError, match=r"no time column.*--row-interval"):
        read_table(path)
    table = read_table([path, path], row_interval="0.5s")
    assert [table.clock.show(time) for time in table.times] == [f"row {k}" for k in range(1, 7)]
    assert table.interval == 0.5
    assert read_table([path, path], row_interval="0.5s", start=2, stop="4").numbers("a").tolist() == [2, 4]
    assert table.numbers("a").tolist() == [1, 2, 4, 1, 2, 4]
    with pytest.raises(ValueError, match="not both"):
        read_table(path, row_interval="1s", time_column="a")


def test_rows_are_sorted_and_rows_of_equal_time_all_stay(tmp_path: Path) -> None:
    t = clock(4)
    path = write_csv(tmp_path / "t.csv", ["time", "a"], [[t[2], t[0], t[2], t[1]], [1, 2, 3, 4]])
    table = read_table(path)
    assert table.numbers("a").tolist() == [2, 4, 1, 3]
    assert len(table.notes) == 2
    later = read_table(path, start=t[1], stop=t[2])
    assert later.numbers("a").tolist() == [4]
    with pytest.raises(ValueError, match=r"no row from 2030-01-01 00:00:00"):
        read_table(path, start="2030-01-01")
    with pytest.raises(ValueError, match="later than start"):
        read_table(path, start="2030-01-01", stop="2020-01-01")


def test_several_files_are_joined_by_name_and_in_time(tmp_path: Path) -> None:
    t = clock(4)
    one = write_csv(tmp_path / "1.csv", ["time", "a", "b"], [t[2:], [3, 4], [30, 40]])
    two = write_csv(tmp_path / "2.csv", ["b", "a", "time"], [[10, 20], [1, 2], t[:2]])
    table = read_table([one, two])
    assert table.numbers("a").tolist() == [1, 2, 3, 4]
    assert table.numbers("b").tolist() == [10, 20, 30, 40]
    three = write_csv(tmp_path / "3.csv", ["time", "a", "c"], [t[:2], [1, 2], [1, 2]])
    with pytest.raises(ValueError, match=r"3\.csv has no column 'b'"):
        read_table([one, three])
    with pytest.raises(ValueError, match=r"3\.csv has a column 'c'.*1\.csv has not"):
        read_table([one, three], exclude=["b"])
    assert read_table([one, three], columns=["a"]).numbers("a").tolist() == [1, 2, 3, 4]


def test_names_that_are_paths_get_short(tmp_path: Path) -> None:
    names = ["time", r"\\HOST\LOG\1_AIT_001_PV", r"\\HOST\A\same", r"\\HOST\B\same"]
    path = write_csv(tmp_path / "t.csv", names, [clock(2), [1, 2], [1, 2], [3, 4]])
    table = read_table(path)
    assert table.names == ("1_AIT_001_PV", r"\\HOST\A\same", r"\\HOST\B\same")
    assert read_table(path, columns=[names[1]]).names == ("1_AIT_001_PV",)


def test_columns_are_chosen_by_name_or_pattern(tmp_path: Path) -> None:
    path = history(tmp_path / "t.csv", 20)
    assert read_table(path, columns=["s2", "s0"]).names == ("s0", "s2")
    assert read_table(path, columns=["s0,s3"]).names == ("s0", "s3")
    assert read_table(path, columns=["s*"], exclude=["s1"]).names == ("s0", "s2", "s3")
    with pytest.raises(ValueError, match=r"exclude: .* 's9'"):
        read_table(path, exclude=["s9"])
    with pytest.raises(ValueError, match=r"no column.* is left"):
        read_table(path, exclude=["*"])


@pytest.mark.parametrize("late", [False, True])
def test_missing_values_in_every_spelling(late: bool, tmp_path: Path) -> None:
    """Also where the first rows, from which types are guessed, do not show them."""
    rows = 20_000 if late else 0
    cells = [*["1.5"] * rows, *MISSING, "2.5"]
    wide = [["0.25"] * len(cells)] * 8  # so that the file is longer than what is looked at
    names = ["time", "a", *(f"c{k}" for k in range(8))]
    path = write_csv(tmp_path / "t.csv", names, [clock(len(cells)), cells, *wide])
    column = read_table(path).numbers("a")
    assert np.isnan(column[rows:-1]).all()
    assert not np.isnan(column[:rows]).any()
    assert column[-1] == 2.5


def test_infinite_readings_are_missing(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", ["time", "a"], [clock(3), ["inf", "1", "-Infinity"]])
    assert np.isnan(read_table(path).numbers("a")).tolist() == [True, False, True]


@pytest.mark.parametrize("given", [None, True])
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_decimal_commas_are_found_in_each_file(given: bool | None, delimiter: str, tmp_path: Path) -> None:
    columns = [clock(2), ["1,5", "-2,25"], ["3", "1,0e2"]]
    path = write_csv(tmp_path / "t.csv", ["time", "a", "b"], columns, delimiter)
    table = read_table(path, decimal_comma=given)
    assert table.numbers("a").tolist() == [1.5, -2.25]
    assert table.numbers("b").tolist() == [3.0, 100.0]
    points = write_csv(tmp_path / "p.csv", ["time", "a", "b"], [clock(2), ["1.5", "2"], ["3", "1.0e2"]], delimiter)
    if given is None:
        assert read_table([path, points]).numbers("a").tolist() == [1.5, 1.5, -2.25, 2.0]
    with pytest.raises(ValueError, match=r"line 2 .* --decimal-comma"):
        read_table(path, decimal_comma=False)
    with pytest.raises(ValueError, match=r"line 2 .* --no-decimal-comma"):
        read_table(points, decimal_comma=True)


def test_decimal_commas_in_every_value_and_no_header(tmp_path: Path) -> None:
    """Lines that fall into as many parts at their commas as at their semicolons."""
    (tmp_path / "t.csv").write_text("".join(f"{t};1,{k};2,{k}\n" for k, t in enumerate(clock(9))))
    table = read_table(tmp_path / "t.csv", header=False)
    assert table.names == ("c2", "c3")
    assert table.numbers("c2").tolist() == [1.0 + k / 10 for k in range(9)]


def test_files_without_column_names(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [clock(3)[0], "1", "2"], [clock(3)[1:], [3, 5], [4, 6]])
    with pytest.raises(ValueError, match=r"no line with column names.*--no-header"):
        read_table(path)
    table = read_table(path, header=False)
    assert table.rule.columns == ("c1",)
    assert table.numbers("c3").tolist() == [2, 4, 6]
    numbers = write_csv(tmp_path / "n.csv", ["1506362400", "1", "2"], [["1506362401"], ["3"], ["4"]])
    table = read_table(numbers, header=False, time_column="c1")
    assert table.names == ("c2", "c3")
    assert table.times[0] == START


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
@pytest.mark.parametrize("packed", [False, True])
def test_encodings(encoding: str, packed: bool, tmp_path: Path) -> None:
    rows = [f"{t},{k}.5,{'geöffnet' if k % 2 else 'zu'}\n" for k, t in enumerate(clock(40))]
    data = ("time,Zulauf °C,Ventil Süd\n" + "".join(rows)).encode(encoding)
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    table = read_table(path)
    assert table.names == ("Zulauf °C", "Ventil Süd")
    assert table.numbers("Zulauf °C").tolist() == [k + 0.5 for k in range(40)]
    assert table.status("Ventil Süd")[0] == ["geöffnet", "zu"]
    said = {"utf-16": "UTF-16", "latin-1": "Latin-1", "cp1252": "Latin-1"}.get(encoding)
    assert [said in note for note in table.notes if said] == [True] * (said is not None)


def test_a_late_byte_that_is_not_utf_8(tmp_path: Path) -> None:
    """Beyond the first megabyte, which is looked at before."""
    rows = [f"{t},{k % 7}.25,{'x' * 60},on\n" for k, t in enumerate(clock(15_000))]
    rows[-1] = rows[-1].replace("on", "Öl")
    (tmp_path / "t.csv").write_bytes(("time,a,long,state\n" + "".join(rows)).encode("latin-1"))
    table = read_table(tmp_path / "t.csv")
    assert table.status("state")[0] == ["on", "Öl"]
    assert "Latin-1" in table.notes[0]


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        read_table(tmp_path / "pipe")


def test_texts_become_levels(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", ["time", "valve", "a"], [clock(4), ["Open", "Closed ", "NA", "Open"], [1, 2, 3, 4]]
    )
    table = read_table(path)
    assert table.texts == {"valve"}
    levels, codes = table.status("valve")
    assert levels == ["Closed", "Open"]
    assert codes[:2].tolist() == [1, 0]
    assert np.isnan(codes[2])


@pytest.mark.parametrize("row", [3, 19_000])
def test_text_among_numbers_is_named(row: int, tmp_path: Path) -> None:
    values = signals(20_000, 8).T.tolist()
    values[2][row] = "broken"
    path = write_csv(tmp_path / "t.csv", ["time", *"abcdefgh"], [clock(20_000), *values])
    with pytest.raises(ValueError, match=rf"^line {row + 2} of .*t\.csv: 'broken' in column 'c' is no number"):
        read_table(path)
    assert read_table(path, exclude=["c"]).names == tuple("abdefgh")


def test_blank_lines_and_empty_rows_are_passed(tmp_path: Path) -> None:
    t = clock(3)
    text = f"note\n\ntime,a,b\n\n{t[0]},1,2\n\n,,\n{t[1]},3,4\n{t[2]},5,6\n\n,,\n"
    (tmp_path / "t.csv").write_text(text)
    assert read_table(tmp_path / "t.csv").numbers("b").tolist() == [2, 4, 6]
    (tmp_path / "t.csv").write_text(text.replace(",,", ",7,"))
    with pytest.raises(ValueError, match=r"line 7 .* has readings but no time"):
        read_table(tmp_path / "t.csv")


def test_quoted_names_and_values(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        '"time","flow, in","state"\n"2020-01-01 00:00","1.5","on, hot"\n"2020-01-01 00:01","2.5","off"\n'
    )
    table = read_table(tmp_path / "t.csv")
    assert table.names == ("flow, in", "state")
    assert table.numbers("flow, in").tolist() == [1.5, 2.5]
    assert table.status("state")[0] == ["off", "on, hot"]


def test_a_star_is_a_name_and_a_pattern_is_refused(tmp_path: Path) -> None:
    rows = "2020-01-01 00:00,1,2\n2020-01-01 00:01,x,3\n"
    (tmp_path / "t.csv").write_text(f"time,*,b\n{rows}")
    expected = Expected(("*", "b"), {}, TimeRule(("time",)))
    faults = Faults()
    table = Recorded(tmp_path / "t.csv").read_as(expected, missing="refuse", limits=(None, None), faults=faults)
    np.testing.assert_equal(table.numbers("*"), [1.0, np.nan])
    assert faults.values["*"][0] == 1
    (tmp_path / "t.csv").write_text(f"time,^a$,b\n{rows}")
    with pytest.raises(ValueError, match="takes for a pattern: rename it"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_parquet(unit: Any, tmp_path: Path) -> None:
    times = pl.Series(np.array([START, START + np.timedelta64(1, "s")], dtype="datetime64[us]")).cast(pl.Datetime(unit))
    frame = pl.DataFrame(
        {
            "a": pl.Series([1, 2], dtype=pl.Int32),
            "when": times,
            "b": [1.5, float("nan")],
            "on": [True, False],
            "state": pl.Series(["x", None], dtype=pl.Categorical),
            "none": pl.Series([None, None]),
        }
    )
    frame.write_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.times.tolist() == [START, START + np.timedelta64(1, "s")]
    assert table.numbers("a").tolist() == [1.0, 2.0]
    assert table.numbers("on").tolist() == [1.0, 0.0]
    assert np.isnan(table.numbers("b")).tolist() == [False, True]
    assert table.status("state")[0] == ["x"]
    assert np.isnan(table.numbers("none")).all()
    frame.with_columns(bad=pl.Series([[1], [2]])).write_parquet(tmp_path / "u.parquet")
    with pytest.raises(ValueError, match=r"column 'bad'.*exclude it"):
        read_table(tmp_path / "u.parquet")


def test_a_column_that_is_text_here_and_numbers_there(tmp_path: Path) -> None:
    t = clock(4)
    one = write_csv(tmp_path / "1.csv", ["time", "a", "b"], [t[:2], ["on", "off"], [1, 2]])
    empty = write_csv(tmp_path / "2.csv", ["time", "a", "b"], [t[2:], ["", ""], [1, 2]])
    other = write_csv(tmp_path / "3.csv", ["time", "a", "b"], [t[2:], ["1.5", "2"], [1, 2]])
    assert read_table([one, empty]).status("a")[0] == ["off", "on"]
    with pytest.raises(ValueError, match=r"'a' .*3\.csv.*1\.csv"):
        read_table([one, other])


def test_a_status_may_mix_numbers_and_texts(tmp_path: Path) -> None:
    """Levels that occur often are levels; a rare text among numbers is an error, even among few numbers."""
    mixed = ["1", "2", "2", "AUTO"] * 10
    path = write_csv(tmp_path / "t.csv", ["time", "mode", "a"], [clock(40), mixed, range(40)])
    assert read_table(path).status("mode")[0] == ["1", "2", "AUTO"]
    numbers = write_csv(tmp_path / "n.csv", ["time", "mode", "a"], [clock(40), ["1", "2"] * 20, range(40)])
    assert read_table([path, numbers]).status("mode")[0] == ["1", "2", "AUTO"]
    rare = write_csv(tmp_path / "r.csv", ["time", "mode", "a"], [clock(40), ["1", "2"] * 19 + ["1", "AUTO"], range(40)])
    with pytest.raises(ValueError, match="'AUTO' in column 'mode' is no number"):
        read_table(rare)


def test_damaged_files_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """Whatever happens to a few places of a file: a table, or a ValueError of one line, never another error."""
    data = history(tmp_path / "t.csv", 200).read_bytes()
    rng = np.random.default_rng(0)
    pieces = [b",", b";", b"\n", b'"', b"\t", b"1e400", b"\r", b"\0", b"\xff", b"\n\n", b"ON", b"inf", b"1,5", b""]
    said = []
    for _ in range(150):
        changed = bytearray(data)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            changed[place : place + int(rng.integers(0, 12))] = pieces[rng.integers(len(pieces))]
        (tmp_path / "t.csv").write_bytes(bytes(changed))
        try:
            read_table(tmp_path / "t.csv")
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 75
    assert not any("\n" in message for message in said)
