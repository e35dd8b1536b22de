"""The NAB score of change points (Lavin and Ahmad 2015) in its standard profile, as SKAB's leaderboard has it.

Each change point opens a window of 60 s. The first detection in it earns what a sigmoid has left, from 1 at once to
-0.11 at the end of the window; further ones in it count nothing, a window without any costs 1, a detection outside of
all windows 0.11. A window that begins before the one before has ended begins there. SKAB takes every beginning and
every end of an alarm as a detection.
"""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array

WINDOW = 60.0  # seconds
_HIT, _FALSE, _MISSED = 1.0, -0.11, -1.0


def nab_points(detections: Array, changes: Array) -> float:
    """The sum of what detections earn and cost; all are seconds in increasing order."""
    points, outside, last = 0.0, np.ones(len(detections), dtype=bool), -np.inf
    for change in changes:
        start, stop = max(float(change), last), float(change) + WINDOW
        inside = (detections >= start) & (detections <= stop)
        points += _earned((detections[inside][0] - start) / (stop - start)) if inside.any() else _MISSED
        outside &= ~inside
        last = stop
    return float(points + _FALSE * outside.sum())


def _earned(place: float) -> float:
    """By the place of the first detection in the window, from 0 to 1.

    >>> [round(_earned(place), 6) for place in (0.0, 0.5, 1.0)]
    [1.0, 0.445, -0.11]
    """
    half = (_HIT - _FALSE) / 2.0
    return float(_FALSE + half * (1.0 - np.tanh(np.pi * (place - 0.5)) / np.tanh(np.pi / 2.0)))


def nab_score(points: float, changes: int) -> float | None:
    """Scaled so that a method without detections has 0 and a perfect one 100; None where there is no change point."""
    return 100.0 * (points - _MISSED * changes) / ((_HIT - _MISSED) * changes) if changes else None
