"""A collection is recognised by what its directory holds, whatever the files of a held-back part are called."""

from pathlib import Path

import numpy as np
import pytest

from eccaht.research.datasets.labelled import find_collections, read_sheet, read_spans
from tests.research.datasets.labelled_format import write_collection
from tests.research.datasets.testbed_format import (
    SENSORS,
    plant_rows,
    write_batadal,
    write_hvac,
    write_sheet,
    write_skab,
    write_sockshop,
    write_tep,
)


def test_all_layouts_are_found_side_by_side_and_others_are_noted(tmp_path: Path) -> None:
    write_collection(tmp_path / "asd", ["a"])
    write_batadal(tmp_path / "water")
    write_skab(tmp_path / "pump")
    write_tep(tmp_path / "chemistry")
    write_sockshop(tmp_path / "shop")
    write_hvac(tmp_path / "air")
    (tmp_path / "papers").mkdir()
    (tmp_path / ".git").mkdir()
    found = find_collections(tmp_path)
    assert [testbed.label for testbed in found.entities] == [
        "air/test",
        "asd/a",
        "chemistry/faults",
        "pump/valve1/0",
        "pump/valve1/1",
        "shop/carts-cpu-2",
        "shop/carts-cpu-10",
        "water/attacks-1-to-2",
    ]
    assert found.notes == ["papers is skipped: its layout is none of the known ones"]
    assert all(path.is_file() for testbed in found.entities for path in testbed.files)


def test_held_back_recordings_are_found_by_the_same_rules(tmp_path: Path) -> None:
    (attacks,) = find_collections(write_batadal(tmp_path / "b", "attacks-8-to-14.csv.gz")).entities
    assert attacks.label == "b/attacks-8-to-14"
    (faults,) = find_collections(write_tep(tmp_path / "t", ("fault-21", "fault-9"))).entities
    assert [path.name[:8] for path in faults.recordings] == ["normal-t", "fault-9.", "fault-21"]
    pumps = find_collections(write_skab(tmp_path / "s", ("valve2/10", "valve2/2", "other/x"))).entities
    assert [pump.label for pump in pumps] == ["s/other/x", "s/valve2/2", "s/valve2/10"]
    assert [pump.label for pump in find_collections(tmp_path / "s" / "other").entities] == ["other/x"]


def test_folders_of_one_kind_are_pooled_unless_other_collections_lie_beside_them(tmp_path: Path) -> None:
    write_skab(tmp_path / "all", ("valve1/0", "valve2/0"))
    assert {pump.collection for pump in find_collections(tmp_path / "all").entities} == {"all"}
    write_tep(tmp_path / "all" / "tep")
    assert {each.collection for each in find_collections(tmp_path / "all").entities} == {"valve1", "valve2", "tep"}


def test_a_directory_without_any_is_refused(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    with pytest.raises(ValueError, match="no labelled collection in"):
        find_collections(tmp_path)
    with pytest.raises(ValueError, match="is not a directory"):
        find_collections(tmp_path / "absent")


def test_a_file_that_cannot_be_unpacked_is_no_recording(tmp_path: Path) -> None:
    write_skab(tmp_path / "s")
    (tmp_path / "s" / "valve1" / "7.csv.gz").write_bytes(b"no gzip")
    assert len(find_collections(tmp_path / "s").entities) == 2


def test_sheets_are_read_with_their_times_or_refused(tmp_path: Path) -> None:
    rows = plant_rows(5, seed=0)
    columns = dict(zip(SENSORS, rows.T, strict=True))
    write_sheet(tmp_path / "a.csv", columns, 60, comma=";")
    sheet = read_sheet(tmp_path / "a.csv")
    assert sheet.names == SENSORS
    np.testing.assert_allclose(sheet.rows, rows, atol=1e-9)
    assert sheet.times is not None
    assert np.diff(sheet.times.astype("datetime64[us]")).tolist() == [np.timedelta64(60, "s")] * 4
    with pytest.raises(ValueError, match=r"a\.csv has no column 'speed'"):
        read_sheet(tmp_path / "a.csv", ["speed"])
    rows[2, 1] = np.nan
    write_sheet(tmp_path / "b.csv", dict(zip(SENSORS, rows.T, strict=True)), 60)
    with pytest.raises(ValueError, match=r"b\.csv has rows with missing values"):
        read_sheet(tmp_path / "b.csv")


@pytest.mark.parametrize("text", ["[]", "{}", '{"attacks": [{"start": "2024-01-02", "stop": "2024-01-01"}]}'])
def test_a_truth_that_dates_no_incident_is_refused(tmp_path: Path, text: str) -> None:
    for write in (write_batadal, write_sockshop, write_hvac):
        testbed = find_collections(write(tmp_path / write.__name__)).entities[0]
        assert testbed.truth is not None
        testbed.truth.write_text(text)
        with pytest.raises(ValueError, match=r"truth\.json"):
            read_spans(testbed)
