"""Shifts as a user writes them: one number for all sensors, and others by name."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eccaht.cli.parsing import parse_shift
from eccaht.files import regular_file
from eccaht.naming import did_you_mean

if TYPE_CHECKING:
    from eccaht.shifts import UnknownShift

    Size = float | UnknownShift


_LARGEST = 1 << 24  # bytes of a file of shifts


def parse_shifts(options: Sequence[str], file: Path | None, names: Sequence[str]) -> list[Size]:
    """Return the shift of each sensor, in robust units.

    options: "2", "-2" or "unknown:2" for all sensors, "NAME=-2" for one, in any order; each may be given once.
    file: CSV of name and shift. Of a sensor the options decide, then the file, then the one for all.

    >>> parse_shifts(["2", "b=-1.5"], None, ["a", "b", "c"])
    [2.0, -1.5, 2.0]
    """
    common, own = _split(options, names)
    told = ({} if file is None else _read(file, names)) | own
    if common is None:
        without = [name for name in names if name not in told]
        if without:
            others = f" and {len(without) - 1} others" if len(without) > 1 else ""
            raise ValueError(f"sensor {without[0]!r}{others} has no shift: add --shift D for those without their own")
        common = 1.0  # for nobody
    return [told.get(name, common) for name in names]


def _split(options: Sequence[str], names: Sequence[str]) -> tuple[Size | None, dict[str, Size]]:
    common: Size | None = None
    own: dict[str, Size] = {}
    for option in options:
        name, equals, text = option.rpartition("=")  # the last one: a name may have one of its own
        value = _size(text, f"--shift {option}")
        if not equals:
            if common is not None:
                raise ValueError(f"--shift {option} is the second shift for all sensors: write NAME={option} for one")
            common = value
            continue
        name = _known(name.strip(), names, "--shift")
        if name in own:
            raise ValueError(f"--shift names {name!r} twice: give it one shift")
        own[name] = value
    return common, own


def _read(path: Path, names: Sequence[str]) -> dict[str, Size]:
    where = f"--shift-file {path}"
    try:
        with regular_file(path, "file") as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ValueError(f"{where} is larger than any list of shifts: give a CSV of name and shift")
        lines = text.decode("utf-8-sig").splitlines(keepends=True)
        rows = [row for row in csv.reader(lines) if any(cell.strip() for cell in row)]
    except OSError as error:
        raise ValueError(f"cannot read {where}: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{where} is no CSV text file") from None
    told: dict[str, Size] = {}
    for number, row in enumerate(rows):
        if len(row) != 2:
            raise ValueError(f"{where}: row {number + 1} has {len(row)} cells, not a name and a shift")
        if number == 0 and row[0] not in names and not _is_size(row[1]):
            continue  # a header
        name = _known(row[0].strip(), names, where)
        if name in told:
            raise ValueError(f"{where} names {name!r} twice: give it one shift")
        told[name] = _size(row[1], f"{where}, {name!r}")
    if not told:
        raise ValueError(f"{where} has no row: write a name and a shift in each")
    return told


def _known(name: str, names: Sequence[str], where: str) -> str:
    if name in names:
        return name
    hint = did_you_mean(name, names)
    raise ValueError(f"{where} names the sensor {name!r}, which the model does not have{hint}")


def _is_size(text: str) -> bool:
    try:
        parse_shift(text)
    except ValueError:
        return False
    return True


def _size(text: str, where: str) -> Size:
    try:
        return parse_shift(text)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
