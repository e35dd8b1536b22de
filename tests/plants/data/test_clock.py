"""Times keep their meaning: with offsets exactly, without them in a zone, also in hours that occur twice or never."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

import eccaht
from eccaht.base.clock import Clock, as_zone
from eccaht.plants.data.source import read_table
from eccaht.plants.data.windows import Cut
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import load_model
from tests.plants.model.histories import signals, write_csv

ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "+05:30",
    "UTC",
]


def place(zone: str) -> Any:
    return Clock(zone)._there(np.datetime64(0, "us")).tzinfo


def through_a_year(zone: str, step: timedelta) -> list[datetime]:
    """Real times, some hours around each change of the clock of 2024."""
    moments = [datetime(2024, 1, 1, tzinfo=UTC) + k * timedelta(hours=1) for k in range(8784)]
    offsets = [moment.astimezone(place(zone)).utcoffset() for moment in moments]
    changes = [moments[k] for k in range(1, len(moments)) if offsets[k] != offsets[k - 1]] or [moments[5000]]
    spans = [(change - timedelta(hours=6), int(timedelta(hours=12) / step)) for change in changes]
    return [start + k * step for start, count in spans for k in range(count)]


def local(moments: list[datetime], zone: str) -> list[str]:
    return [moment.astimezone(place(zone)).replace(tzinfo=None).isoformat(" ") for moment in moments]


def in_utc(moments: list[datetime]) -> list[np.datetime64]:
    return [np.datetime64(moment.replace(tzinfo=None), "us") for moment in moments]


@pytest.mark.parametrize(
    ("zone", "step", "newest_first"),
    [
        *((zone, timedelta(minutes=10), False) for zone in ZONES),
        ("Europe/Berlin", timedelta(seconds=97), True),
        ("America/New_York", timedelta(hours=1), False),  # both passes of the hour have one row, of the same time
        ("Africa/Casablanca", timedelta(minutes=45), True),
    ],
)
def test_local_times_without_an_offset_are_what_they_were(
    zone: str, step: timedelta, newest_first: bool, tmp_path: Path
) -> None:
    """Also in the hour that occurs twice, where only the order of the rows shows which it is."""
    moments = through_a_year(zone, step)
    written = moments[::-1] if newest_first else moments
    path = write_csv(tmp_path / "t.csv", ["time", "a"], [local(written, zone), range(len(written))])
    table = read_table(path, timezone=zone)
    assert table.times.tolist() == np.array(in_utc(moments)).tolist()
    assert table.clock == Clock(as_zone(zone))
    assert not [note for note in table.notes if "time" in note and "order" not in note]
    assert [table.clock.exact(time) for time in table.times[:5]] == [
        moment.astimezone(place(zone)).isoformat(" ") for moment in moments[:5]
    ]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("minutes", [1, 60, 1440])
def test_windows_are_whole_windows_of_the_local_clock(zone: str, minutes: int) -> None:
    """One at a time by the definition: the last multiple of the length on the wall, but no earlier than a change."""
    moments = through_a_year(zone, timedelta(minutes=11))
    cut = Cut.of(np.array(in_utc(moments)), 60.0 * minutes, Clock(zone))
    starts = np.repeat(cut.starts, cut.rows)
    assert (np.diff(cut.starts) > np.timedelta64(0)).all()
    whole: list[Any] = starts.tolist()
    for moment, start in zip(moments, whole, strict=True):
        there, begun = moment.astimezone(place(zone)), start.replace(tzinfo=UTC).astimezone(place(zone))
        wall = there.replace(tzinfo=None) - datetime(1970, 1, 1)
        floor = datetime(1970, 1, 1) + wall // timedelta(minutes=minutes) * timedelta(minutes=minutes)
        assert begun <= there
        assert begun.utcoffset() == there.utcoffset()
        if begun.replace(tzinfo=None) != floor:  # the clock was changed since: the window starts there
            assert begun.replace(tzinfo=None) > floor
            assert (start.replace(tzinfo=UTC) - timedelta(seconds=1)).astimezone(begun.tzinfo).utcoffset() != (
                begun.utcoffset()
            )


def test_an_hour_that_is_ambiguous_and_one_that_does_not_exist_are_noted(tmp_path: Path) -> None:
    once = [
        f"2024-10-27 0{hour}:{minute:02d}" for hour in (1, 2, 3) for minute in range(0, 60, 5)
    ]  # one pass is missing
    table = read_table(write_csv(tmp_path / "t.csv", ["time", "a"], [once, range(36)]), timezone="Europe/Berlin")
    assert any("12 rows" in note and "occur twice: read as the first" in note for note in table.notes)
    assert table.times[12] == np.datetime64("2024-10-27T00:00")
    never = [f"2024-03-31 0{hour}:{minute:02d}" for hour in (1, 2, 3) for minute in range(0, 60, 5)]
    table = read_table(write_csv(tmp_path / "t.csv", ["time", "a"], [never, range(36)]), timezone="Europe/Berlin")
    assert any("12 rows" in note and "do not exist: read as 1h later" in note for note in table.notes)
    assert table.times[12] == np.datetime64("2024-03-31T01:00")
    ends_inside = once[:18]  # the second pass is still to come
    table = read_table(write_csv(tmp_path / "t.csv", ["time", "a"], [ends_inside, range(18)]), timezone="Europe/Berlin")
    assert table.notes == ()


def test_offsets_are_kept_if_they_are_all_the_same_and_utc_with_a_note_if_not(tmp_path: Path) -> None:
    same = write_csv(
        tmp_path / "s.csv", ["time", "a"], [["2024-05-01T08:00:00+02:00", "2024-05-01T08:01:00+02:00"], [1, 2]]
    )
    table = read_table(same)
    assert table.clock.zone == "+02:00"
    assert table.notes == ()
    assert table.clock.exact(table.times[0]) == "2024-05-01 08:00:00+02:00"
    assert table.times[0] == np.datetime64("2024-05-01T06:00")
    assert len(read_table(same, start="2024-05-01T08:01").times) == 1  # there, not in UTC
    assert len(read_table(same, start="2024-05-01T06:01Z").times) == 1
    zulu = write_csv(tmp_path / "z.csv", ["time", "a"], [["2024-05-01T06:02:00Z", "2024-05-01T06:03:00Z"], [3, 4]])
    assert read_table(zulu).clock.zone == "UTC"
    for paths in (
        [same, zulu],
        [
            write_csv(
                tmp_path / "d.csv", ["time", "a"], [["2024-10-27T02:59:00+02:00", "2024-10-27T02:00:00+01:00"], [1, 2]]
            )
        ],
    ):
        table = read_table(paths)
        assert table.clock.zone == "UTC"
        assert any("shown in UTC" in note for note in table.notes)
        assert (np.diff(table.times) == np.timedelta64(1, "m")).all()
        assert read_table(paths, timezone="Europe/Berlin").notes == ()
    naive = write_csv(tmp_path / "n.csv", ["time", "a"], [["2024-05-01T08:04:00", "2024-05-01T08:05:00"], [5, 6]])
    assert read_table(naive).clock.zone is None
    with pytest.raises(ValueError, match="--timezone"):
        read_table([zulu, naive])
    table = read_table([zulu, naive], timezone="Europe/Berlin")
    assert (np.diff(table.times) == np.timedelta64(1, "m")).all()


def test_parquet_keeps_its_zone(tmp_path: Path) -> None:
    times = pl.datetime_range(datetime(2024, 5, 1), datetime(2024, 5, 1, 1), "1m", time_zone="Asia/Tokyo", eager=True)
    pl.DataFrame({"time": times, "a": range(61)}).write_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.clock.exact(table.times[0]) == "2024-05-01 00:00:00+09:00"


def test_a_model_remembers_its_zone_and_new_data_are_read_in_it(tmp_path: Path) -> None:
    begin = datetime(2024, 10, 26, 20, tzinfo=UTC)
    moments = [begin + k * timedelta(seconds=10) for k in range(6 * 60 * 8)]  # through the hour that occurs twice
    numbers = signals(len(moments), 2).T.tolist()
    naive = write_csv(tmp_path / "h.csv", ["time", "a", "b"], [local(moments, "Europe/Berlin"), *numbers])
    exact = write_csv(tmp_path / "e.csv", ["time", "a", "b"], [[m.isoformat(" ") for m in moments], *numbers])
    model = calibrate(naive, timezone="Europe/Berlin", window="1min")
    assert model.n_windows == 480
    assert np.array_equal(model.covariance.dense(), calibrate(exact, window="1min").covariance.dense())
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.reading["timezone"] == "Europe/Berlin"
    one, two = again.prepare(naive), again.prepare(exact)
    assert np.array_equal(one.starts, two.starts)
    assert np.array_equal(one.values, two.values)
    assert one.clock.show(one.starts[0]) == "2024-10-26 22:00:00"
    assert one.clock.show(one.starts[270]) == "2024-10-27 02:30:00+02:00"  # the offset is shown where it matters
    assert one.clock.show(one.starts[330]) == "2024-10-27 02:30:00+01:00"
    later = again.prepare(naive, start="2024-10-27T02:30", stop="2024-10-27T02:30+01:00")
    assert len(later.starts) == 60
    assert len(one.between("2024-10-27T03:00").starts) == len(one.starts) - 360


@pytest.mark.parametrize("text", ["Mars/Olympus", "", "../../etc/passwd", "+99:00", "Europe", "CET-1CEST"])
def test_what_is_no_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unknown time zone") as error:
        as_zone(text)
    assert "\n" not in str(error.value)


def test_a_zone_read_from_a_file_is_checked(tmp_path: Path) -> None:
    assert ZoneInfo("Europe/Berlin").key == as_zone("Europe/Berlin")
    path = write_csv(
        tmp_path / "h.csv",
        ["time", "a", "b"],
        [[f"2024-05-01 08:{k // 6:02d}:{k % 6}0" for k in range(360)], *signals(360, 2).T.tolist()],
    )
    model = calibrate(path)
    model.reading["timezone"] = "Nowhere"
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match="unknown time zone 'Nowhere'"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("clock", "text"),
    [
        (Clock(row_interval=1.0), "9" * 309),
        (Clock(row_interval=1.0), "9" * 5000),
        (Clock(row_interval=366 * 86400.0), "9" * 18),
        (Clock("UTC"), "9" * 309),
        (Clock("UTC"), "0001-01-01T00:00+14:00"),
        (Clock("+14:00"), "0001-01-01"),
        (Clock("UTC"), "9999-12-31T23:59-14:00"),
    ],
)
def test_a_time_beyond_the_calendar_is_refused_in_a_short_line(clock: Clock, text: str) -> None:
    with pytest.raises(ValueError, match="start") as error:
        clock.parse(text, "start")
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("form", "text", "moment"),
    [
        ("%d/%m/%Y %H:%M:%S%.f", "07/03/2024", "2024-03-07"),
        ("%m/%d/%Y %I:%M %p", "07/03/2024 1:30 PM", "2024-07-03T13:30"),
        ("%d.%m.%y %H", "7.3.24 08:15", "2024-03-07T08:15"),
        ("%Y/%m/%d", "2024-03-07", "2024-03-07"),
    ],
)
def test_a_date_is_read_as_the_data_write_it(form: str, text: str, moment: str) -> None:
    assert Clock(formats=(form,)).parse(text) == np.datetime64(moment)
    assert Clock("+02:00", formats=(form,)).parse(text) == np.datetime64(moment) - np.timedelta64(2, "h")


@pytest.mark.parametrize("text", ["03/07", "2024/13/07", "noon", "13/25/2024", ""])
def test_a_date_that_the_data_would_not_write_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="or as the data do"):
        Clock(formats=("%d/%m/%Y %H:%M",)).parse(text)


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y"])
def test_limits_of_an_identification_have_day_and_month_as_in_the_history(form: str) -> None:
    times = pd.date_range("2024-03-05", periods=600, freq="10min")
    rows = np.random.default_rng(0).normal(50.0, 1.0, (600, 3))
    frame = pd.DataFrame(rows, times.strftime(f"{form} %H:%M"), ["a", "b", "c"])
    model = eccaht.calibrate(frame, drills=0, stop=times[500].strftime(form), progress=False)
    assert model.last < np.datetime64(times[500].date()) <= model.last + np.timedelta64(10, "m")
    answer = model.identify(frame[-80:], start=times[550].strftime(f"{form} %H:%M"), progress=False)
    assert answer.first == times[550]
