"""The files of either edition say the same, and the list of attacks is consistent."""

import csv
import gzip
from datetime import datetime, timedelta
from importlib.resources import files as resources
from pathlib import Path

import numpy as np
import pytest

from eccaht.research.datasets.wadi import (
    FIRST_ATTACK_ROW,
    WadiFiles,
    check_beginning,
    clock,
    find_files,
    is_sensor,
    match_points,
    not_sensors,
    read_attacks,
    tag,
    whole_windows,
)
from tests.research.datasets.wadi_format import LABEL, PREFIX, plant, write

LAST_ROW = FIRST_ATTACK_ROW + timedelta(days=2)


def test_the_attacks_are_fifteen_in_fourteen_intervals_that_do_not_overlap() -> None:
    attacks = read_attacks()
    numbers = [number for attack in attacks for number in attack.number.split("-")]
    assert numbers == [str(k) for k in range(1, 16)]
    assert len(attacks) == 14
    moments = [moment for attack in attacks for moment in (attack.start, attack.end)]
    assert moments == sorted(moments)
    assert moments[0] >= FIRST_ATTACK_ROW
    assert moments[-1] <= LAST_ROW


def test_the_numbers_in_the_file_count_the_points() -> None:
    text = (resources("eccaht.research.datasets") / "wadi_attacks.csv").read_text()
    for row, attack in zip(csv.DictReader(text.splitlines()), read_attacks(), strict=True):
        assert int(row["n"]) == len(attack.points) == len(set(attack.points))


def test_attacks_are_chosen_by_number_and_unknown_ones_refused() -> None:
    assert [attack.number for attack in read_attacks(["15", "3-4"])] == ["3-4", "15"]
    with pytest.raises(ValueError, match=r"no attack '16' in WaDi: use 1, 2, 3-4"):
        read_attacks(["16"])


@pytest.mark.parametrize(
    "column",
    ["1_MV_001_STATUS", "1-MV-001-STATUS", " 1_mv_001_status ", PREFIX + "1_MV_001_STATUS", "a/b/1_MV_001_STATUS"],
)
def test_a_point_is_found_however_its_column_is_spelt(column: str) -> None:
    assert tag(column) == "1_MV_001_STATUS"
    for point in ("1_MV_001", "1-mv-001", "1_MV_001_STATUS"):
        assert match_points([point], ["1_MV_0011_PV", column]) == ((column,), {})


def test_points_without_exactly_one_column_are_listed() -> None:
    columns = ["2_P_003_SPEED", "2_P_003_STATUS", "2_MCV_101_CO", "2_MCV_1011_CO"]
    found = match_points(["2_MCV_101", "2_P_003", "1_P_006", "2_P_003_SPEED"], columns)
    assert found.columns == ("2_MCV_101_CO", "2_P_003_SPEED")
    assert found.unmatched == {"2_P_003": "several columns: 2_P_003_SPEED, 2_P_003_STATUS", "1_P_006": "no column"}


def test_rows_times_and_labels_are_no_sensors() -> None:
    assert not any(is_sensor(name) for name in ("Row", "Row ", "Date", " Time", LABEL, ""))
    assert all(is_sensor(name) for name in ("1_AIT_001_PV", PREFIX + "LEAK_DIFF_PRESSURE", "TOTAL_CONS_REQUIRED_FLOW"))


@pytest.mark.parametrize("edition", ["2017", "2019"])
def test_files_are_found_under_either_name(tmp_path: Path, edition: str) -> None:
    small = plant(5, seed=0, hour=18)
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep", edition, small, small)
    found = find_files(tmp_path)
    assert found.edition == edition
    assert found.history.parent.name == found.attacks.parent.name == "deep"
    packed = found.history.with_name(found.history.name + ".gz")
    packed.write_bytes(gzip.compress(found.history.read_bytes()))
    found.history.unlink()
    assert find_files(tmp_path / "deep").history == packed
    assert not_sensors(packed) == ["Row", "Date", "Time"]


def test_the_newer_edition_wins_and_half_an_edition_is_none(tmp_path: Path) -> None:
    small = plant(5, seed=0, hour=18)
    write(tmp_path, "2017", small, small)
    write(tmp_path, "2019", small, small)
    assert find_files(tmp_path).edition == "2019"
    (tmp_path / "WADI_14days_new.csv").unlink()
    assert find_files(tmp_path).edition == "2017"
    (tmp_path / "WADI_attackdata.csv").unlink()
    with pytest.raises(ValueError, match="it needs WADI_14days"):
        find_files(tmp_path)
    with pytest.raises(ValueError, match="is not a directory"):
        find_files(tmp_path / "absent")


@pytest.mark.parametrize("edition", ["2017", "2019"])
def test_attack_data_must_begin_where_the_attacks_are_counted_from(tmp_path: Path, edition: str) -> None:
    small = plant(5, seed=0, hour=18)
    found = find_files(write(tmp_path, edition, small, small))
    check_beginning(found)
    with pytest.raises(ValueError, match="9 October 2017"):
        check_beginning(WadiFiles(edition, found.attacks, found.history))


def test_whole_windows_are_those_that_lie_within() -> None:
    attack = read_attacks(["2"])[0]  # 10:24:10 to 10:34:00
    starts = np.datetime64("2017-10-10T10:00", "us") + np.arange(60) * np.timedelta64(60, "s")
    windows = starts[whole_windows(attack, starts, 60.0)]
    assert windows[0] == np.datetime64("2017-10-10T10:25")
    assert windows[-1] == np.datetime64("2017-10-10T10:33")
    assert len(windows) == 9


def test_rows_are_counted_by_the_clock_of_the_testbed() -> None:
    counted = np.array([0, 5100], dtype="datetime64[s]").astype("datetime64[us]")
    assert clock(counted).tolist() == [datetime(2017, 10, 9, 18), read_attacks(["1"])[0].start]
