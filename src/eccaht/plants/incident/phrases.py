"""The small phrases of answers: kinds of fault, sizes, beliefs, moments, places in a ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eccaht.base.clock import Clock
from eccaht.plants.incident.answer import Incident, Interval, Suspect

SIGNED = ("step", "drift", "moved")  # kinds with a direction
_WORDS = {"noise": "noisy", "replay": "as if replayed", "range": "out of range", "free": "own course"}
_DIGITS = 1e-4  # of a number is all that is shown of it
_PLAIN = 1e-4, 1e7  # numbers between are written without an exponent


def kind_of(suspect: Suspect) -> str:
    """The kind of fault, with its direction where it has one; nothing for a sensor that is not named."""
    if not suspect.named:
        return ""
    word = _WORDS.get(suspect.kind, suspect.kind)
    if suspect.kind in SIGNED and suspect.size_raw and math.isfinite(suspect.size_raw):
        return f"{word} {'up' if suspect.size_raw > 0 else 'down'}"
    return word


def in_digits(x: float, unit: float, sign: str = "") -> str:
    """A number with as many places as show two digits of `unit`, which is what matters of it.

    >>> in_digits(61.23456, 0.31), in_digits(61.23456, 31.0), in_digits(-0.04, 1.0, "+"), in_digits(2.5e9, 3e7)
    ('61.23', '61', '+0.0', '2.5e+09')
    """
    if not math.isfinite(x):
        return "-"
    least, most = _PLAIN
    if not (math.isfinite(unit) and least <= abs(unit) < most and abs(x) < most):
        return f"{x:{sign}.3g}"
    places = max(0, 1 - math.floor(math.log10(abs(unit))))
    return f"{round(x, places) + 0.0:{sign}.{places}f}"  # never -0.0


def sized(value: float, interval: Interval) -> str:
    """A size with its sign and its interval.

    >>> sized(3.2134, Interval(2.94, 3.48))
    '+3.21 (+2.94 to +3.48)'
    """
    if not math.isfinite(value):
        return ""
    reach = 0.5 * (interval.high - interval.low)
    if not (math.isfinite(reach) and reach > 0.0):
        return in_digits(value, value, "+")
    unit = max(reach, _DIGITS * abs(value))
    middle, low, high = (in_digits(x, unit, "+") for x in (value, interval.low, interval.high))
    return f"{middle} ({low} to {high})"


def deviations(z: float, sign: str = "") -> str:
    """How many standard deviations, without the sign unless it is asked for.

    >>> deviations(-0.84), deviations(-0.84, "+"), deviations(212.7), deviations(3.2e7), deviations(float("nan"))
    ('0.8', '-0.8', '213', '3e+07', '-')
    """
    if not math.isfinite(z):
        return "-"
    shown, size = z if sign else abs(z), abs(z)
    return f"{shown:{sign}.1f}" if size < 99.95 else f"{shown:{sign}.0f}" if size < 99999.5 else f"{shown:{sign}.0e}"


def amount(evidence: float) -> str:
    """Evidence with one place, or a word where there is none.

    >>> amount(57.23), amount(float("inf"))
    ('57.2', 'unknown')
    """
    return f"{evidence:.1f}" if math.isfinite(evidence) else "unknown"


def belief(probability: float) -> str:
    """A probability with three places, and never certainty.

    >>> belief(0.98765), belief(1.0), belief(1e-9)
    ('0.988', '>0.999', '<0.001')
    """
    return ">0.999" if probability >= 0.9995 else "<0.001" if probability < 0.0005 else f"{probability:.3f}"


def ordinal(place: int) -> str:
    """A place in a ranking.

    >>> [ordinal(k) for k in (1, 2, 3, 4, 11, 22, 113)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd', '113th']
    """
    last = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{last}"


def moment(clock: Clock, time: np.datetime64, beside: np.datetime64 | None = None) -> str:
    """A time without seconds if there are none, and without its date beside another time of the same day.

    >>> morning = np.datetime64("2024-03-07T08:00")
    >>> moment(Clock(), morning), moment(Clock(), morning + 1, morning)
    ('2024-03-07 08:00', '08:01')
    """
    shown = _short(clock.show(time.astype("datetime64[us]")))
    if beside is not None and clock.row_interval is None:
        day, _, hour = shown.partition(" ")
        return hour if clock.show(beside.astype("datetime64[us]")).startswith(f"{day} ") else shown
    return shown


def _short(shown: str) -> str:
    return shown.removesuffix(":00") if shown.count(":") == 2 else shown


def joined(names: Sequence[str]) -> str:
    """A few names as in a sentence.

    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def shortened(name: str, most: int) -> str:
    """The end of a long name, which is where names differ.

    >>> shortened("PLANT/AREA 5/LT-101", 8)
    '…/LT-101'
    """
    return name if len(name) <= most else f"…{name[1 - most :]}"


def places(incident: Incident) -> dict[str, dict[str, int]]:
    return {
        name: {sensor: place for place, (sensor, _) in enumerate(ranking, 1)}
        for name, ranking in incident.rankings.items()
    }
