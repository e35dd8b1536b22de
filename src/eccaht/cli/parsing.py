"""What users write for a number of anomalies and for the size of a shift."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from eccaht.shifts import UnknownShift

_NUMBER = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
Number = TypeVar("Number", int, float)
_SIGNS = ("either", "positive", "negative")


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


def parse_shift(text: str) -> float | UnknownShift:
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
    from eccaht.shifts import UnknownShift

    return UnknownShift(scale, *rest[1:])  # type: ignore[arg-type]


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
