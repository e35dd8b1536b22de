"""What users write for a number of anomalies and for the sizes of shifts."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from eccaht.base.files import regular_file
from eccaht.base.presentation.text import did_you_mean
from eccaht.streams import UnknownShift

Size = float | UnknownShift
_NUMBER = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
Number = TypeVar("Number", int, float)
_SIGNS = ("either", "positive", "negative")
_LARGEST = 1 << 24  # bytes of a file of shifts


def parse_number(text: str) -> int | tuple[int, int]:
    """Read how many streams are anomalous: N, or LO-HI where the number is not known.

    >>> parse_number("5"), parse_number("0-8"), parse_number("3-3")
    (5, (0, 8), 3)
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"the number of anomalies is a whole number such as 5 or a range such as 0-8, not {text!r}")
    least, most = int(match[1]), int(match[2] or match[1])
    if least > most:
        raise ValueError(f"the number of anomalies {text!r} runs backwards: write {most}-{least}")
    if most < 1:
        raise ValueError(f"the number of anomalies {text!r} leaves nothing to find: the most must be at least 1")
    return least if least == most else (least, most)


def parse_list(text: str, kind: Callable[[str], Number], wrong: str, between: str = ",") -> list[Number]:
    """Read numbers with commas between, or say what is wrong.

    >>> parse_list("0.05, 0.01", float, "no numbers")
    [0.05, 0.01]
    """
    try:
        return [kind(part) for part in text.split(between)]
    except ValueError:
        raise ValueError(wrong) from None


def parse_shift(text: str) -> Size:
    """Read the size of an anomaly: D with its sign, or unknown:SCALE, if need be with :positive or :negative.

    >>> parse_shift("-2.5")
    -2.5
    >>> parse_shift("unknown:3"), parse_shift("unknown:3:positive")
    (UnknownShift(scale=3.0, sign='either'), UnknownShift(scale=3.0, sign='positive'))
    """
    word, *rest = (part.strip() for part in text.split(":"))
    if word != "unknown":
        size = _finite(text)
        if size is None:
            raise ValueError(f"a shift is a number such as 3 or -2.5, or unknown:SCALE such as unknown:3, not {text!r}")
        if size == 0:
            raise ValueError("a shift of 0 is invisible: give it a size, or unknown:SCALE if the size is not known")
        return size
    scale = _finite(rest[0]) if rest else None
    if scale is None or scale <= 0:
        raise ValueError(f"an unknown shift needs its likely size, a number above 0 such as unknown:3, not {text!r}")
    if rest[1:] and (rest[1] not in _SIGNS or rest[2:]):
        raise ValueError(f"after unknown:{rest[0]} may come :positive, :negative or :either, not {text!r}")
    return UnknownShift(scale, *rest[1:])  # type: ignore[arg-type]


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def parse_shifts(options: Sequence[str], file: Path | None, names: Sequence[str]) -> list[Size]:
    """Return the shift of each sensor, in robust units.

    options: "2", "-2" or "unknown:2" for all sensors, "NAME=-2" for one, in any order; each may be given once.
    file: CSV of name and shift. Of a sensor the options decide, then the file, then the one for all.

    >>> parse_shifts(["2", "b=-1.5"], None, ["a", "b", "c"])
    [2.0, -1.5, 2.0]
    """
    common: list[Size] = []
    own: dict[str, Size] = {}
    for option in options:
        name, equals, text = option.rpartition("=")  # the last one: a name may have one of its own
        size = _size(text, f"--shift {option}")
        if equals:
            _add(own, name.strip(), size, "--shift", names)
        elif common:
            raise ValueError(f"--shift {option} is the second shift for all sensors: write NAME={option} for one")
        else:
            common.append(size)
    shifts = ({} if file is None else _read(file, names)) | own
    if not common and (without := [name for name in names if name not in shifts]):
        others = f" and {len(without) - 1} others" if len(without) > 1 else ""
        raise ValueError(f"sensor {without[0]!r}{others} has no shift: add --shift D for those without their own")
    return [shifts[name] if name in shifts else common[0] for name in names]


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
    shifts: dict[str, Size] = {}
    for number, row in enumerate(rows):
        if len(row) != 2:
            raise ValueError(f"{where}: row {number + 1} has {len(row)} cells, not a name and a shift")
        try:
            size = _size(row[1], f"{where}, {row[0].strip()!r}")
        except ValueError:
            if number == 0 and row[0] not in names:
                continue  # a header
            raise
        _add(shifts, row[0].strip(), size, where, names)
    if not shifts:
        raise ValueError(f"{where} has no row: write a name and a shift in each")
    return shifts


def _add(shifts: dict[str, Size], name: str, size: Size, where: str, names: Sequence[str]) -> None:
    if name not in names:
        hint = did_you_mean(name, names)
        raise ValueError(f"{where} names the sensor {name!r}, which the model does not have{hint}")
    if name in shifts:
        raise ValueError(f"{where} names {name!r} twice: give it one shift")
    shifts[name] = size


def _size(text: str, where: str) -> Size:
    try:
        return parse_shift(text)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
