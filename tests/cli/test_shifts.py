"""Shifts by number, by name and from a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eccaht import UnknownShift
from eccaht.cli.parsing import parse_shifts

NAMES = ("a", "b", "k=1")


def test_own_shifts_go_before_those_of_the_file_and_these_before_the_number_for_all(tmp_path: Path) -> None:
    file = tmp_path / "shifts.csv"
    file.write_text("sensor,shift\nb,-3\na,4\n")
    assert parse_shifts(["-2"], None, NAMES) == [-2, -2, -2]
    assert parse_shifts(["2", "k=1=-1.5"], None, NAMES) == [2, 2, -1.5]
    assert parse_shifts(["2", "b=7"], file, NAMES) == [4, 7, 2]
    assert parse_shifts(["k=1=1e-1"], file, NAMES) == [4, -3, 0.1]
    assert parse_shifts(["unknown:2", "b=1"], None, NAMES) == [UnknownShift(2.0), 1.0, UnknownShift(2.0)]
    assert parse_shifts(["1", "k=1=unknown:2:negative"], None, NAMES) == [1.0, 1.0, UnknownShift(2.0, "negative")]
    file.write_text("b,unknown:3\n")
    assert parse_shifts(["1"], file, NAMES) == [1.0, UnknownShift(3.0), 1.0]
    file.write_text("b,-3\n\na,4\n")  # without a header
    assert parse_shifts(["1"], file, NAMES) == [4, -3, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["a=1"], "'b' and 1 others has no shift"),
        (["1", "2"], "second shift for all"),
        (["1", "a=unknown"], "--shift a=unknown: .*likely size"),
        (["unknown:2:up"], "positive"),
        (["1", "a=2", "a=3"], "'a' twice"),
        (["x"], "is a number such as"),
        (["nan"], "is a number such as"),
        (["inf"], "is a number such as"),
        (["0"], "invisible"),
        (["1", "c=2"], "does not have"),
        (["1", "kk=1=2"], "did you mean 'k=1'"),
        (["a="], "is a number such as"),
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
        (b"a,1\nb,two\n", "is a number such as"),
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


def test_only_regular_files_of_a_sane_size_hold_shifts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ValueError, match="not a regular file"):
            parse_shifts(["1"], odd, NAMES)
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(1 << 25)
    with pytest.raises(ValueError, match="larger than any list of shifts"):
        parse_shifts(["1"], tmp_path / "large.csv", NAMES)
