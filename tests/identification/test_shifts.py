"""Shifts by number, by name and from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from eccaht.identification.shifts import parse_shifts

NAMES = ("a", "b", "k=1")


def test_own_shifts_go_before_those_of_the_file_and_these_before_the_number_for_all(tmp_path: Path) -> None:
    file = tmp_path / "shifts.csv"
    file.write_text("sensor,shift\nb,-3\na,4\n")
    assert parse_shifts(["-2"], None, NAMES).tolist() == [-2, -2, -2]
    assert parse_shifts(["2", "k=1=-1.5"], None, NAMES).tolist() == [2, 2, -1.5]
    assert parse_shifts(["2", "b=7"], file, NAMES).tolist() == [4, 7, 2]
    assert parse_shifts(["k=1=1e-1"], file, NAMES).tolist() == [4, -3, 0.1]
    file.write_text("b,-3\n\na,4\n")  # without a header
    assert parse_shifts(["1"], file, NAMES).tolist() == [4, -3, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a=1"], "'b' and 1 others has no shift"),
        (["1", "2"], "second number for all"),
        (["1", "a=2", "a=3"], "'a' twice"),
        (["x"], "not a number"),
        (["nan"], "not a number"),
        (["inf"], "not a number"),
        (["0"], "invisible"),
        (["1", "c=2"], "does not have"),
        (["1", "kk=1=2"], "did you mean 'k=1'"),
        (["a="], "not a number"),
    ],
)
def test_what_cannot_be_a_shift_is_refused_by_name(options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_shifts(options, None, NAMES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no row"),
        (b"sensor,shift\n", "no row"),
        (b"a,1,2\n", "3 cells"),
        (b"a,1\na,2\n", "twice"),
        (b"a,1\nz,2\n", "does not have"),
        (b"a,1\nb,two\n", "not a number"),
        (b"\xff\xfe\x00", "no CSV text"),
    ],
)
def test_bad_shift_files_are_refused_in_one_line(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "shifts.csv"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        parse_shifts(["1"], file, NAMES)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="cannot read"):
        parse_shifts(["1"], tmp_path / "absent.csv", NAMES)
