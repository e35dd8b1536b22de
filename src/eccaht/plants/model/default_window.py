"""The length of windows that is taken if none is given: from the rows of the history."""

from __future__ import annotations

from collections.abc import Iterator

from eccaht.plants.data.table import Table
from eccaht.plants.data.windows import Cut

ENOUGH_WINDOWS = 1000  # so many windows show level, memory and tails well: more of them may be longer instead
_LONGEST = 60.0
_ROUND = (60.0, 30.0, 20.0, 15.0, 10.0, 5.0, 2.0)  # and 1, 0.5, 0.2, 0.1, ...
_ROUND_ROWS = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0)  # seconds, minutes; hours and a day
JITTER = 0.05  # share of the time between rows by which it may be misjudged where times are not exact
_NEAR = 0.01  # share by which a round length between rows is misjudged
_UNEVEN = 0.1  # of the rows of a window: more would make some windows noisier than others


def default_window(table: Table) -> float:
    """Seconds of a window, or rows where these are counted.

    Means of several rows have less noise, and a minute is soon enough for an answer; but a model needs windows. So it
    is the longest round length up to a minute that leaves ENOUGH_WINDOWS. Where none does, or rows are a minute apart
    or more, each row is a window.
    """
    if table.rule.counted:
        return 1.0
    interval = table.interval
    if interval < (1.0 - JITTER) * _LONGEST:
        for seconds in _round_lengths(interval):
            if int(Cut.of(table.times, seconds, table.clock).full.sum()) >= ENOUGH_WINDOWS:
                return seconds
    return _single_row(interval)


def _round_lengths(interval: float) -> Iterator[float]:
    """Round lengths from a minute down to the time between rows that hold about the same number of rows each."""
    fractions = (float(f"{digit}e{power}") for power in range(0, -7, -1) for digit in (1, 0.5, 0.2))
    for seconds in (*_ROUND, *fractions):
        rows = seconds / interval
        if rows >= 1.0 - JITTER and abs(rows - round(rows)) <= _UNEVEN * rows:
            yield seconds


def _single_row(interval: float) -> float:
    """The time between rows, the round one beside it if there is one: the median of jittered times is not exact."""
    units = (*(10.0**power for power in range(-6, 1)), 60.0, 3600.0)
    round_ones = (*(unit * number for unit in units for number in _ROUND_ROWS), 86400.0)
    nearest = min(round_ones, key=lambda seconds: abs(seconds - interval))
    return round(nearest if abs(nearest - interval) <= _NEAR * interval else interval, 6)
