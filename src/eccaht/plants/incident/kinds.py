"""Of what kind a fault is, by the course of a sensor's deviation from what the others predict."""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array
from eccaht.streams.watch.alarm import Kind

SPREADS = ("noise", "replay")  # kinds whose size is a spread, which has no sign
_FEWEST = 5  # windows of a course that is known from a step
_MOST = 0.6  # share of the power that a course must explain
_MORE = 0.05  # by which a drift must explain more than a step
_UNRELATED = 0.85  # share of the power of the course that readings of another time stay below
_WHITE = 0.35  # autocorrelation below which a course is noise


def kind_of(course: Array, read: Array | None = None) -> Kind:
    """The kind of a course, (L,): a step, a drift, noise, a replay, or a course of its own.

    read: the readings themselves, (L,), which are the course and what the others predict p. Where something was added
    to what the sensor should read, they vary more than the course, by p; where they have nothing to do with p, less.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise = 0.1 * rng.standard_normal(40)
    >>> kind_of(3.0 + noise), kind_of(np.linspace(0, 4, 40) + noise), kind_of(30 * noise)
    ('step', 'drift', 'noise')
    >>> predicted, other = rng.standard_normal((2, 40))
    >>> kind_of(other - predicted, other), kind_of(other, other + predicted)
    ('replay', 'noise')
    """
    present = ~np.isnan(course)
    course = course[present]
    power = float(course @ course)
    if len(course) < _FEWEST or power <= 0.0:
        return "step"
    time = np.arange(1.0, len(course) + 1.0)
    step = len(course) * course.mean() ** 2 / power
    drift = float(course @ time) ** 2 / (float(time @ time) * power)
    if drift > _MOST and drift > step + _MORE:
        return "drift"
    if step > _MOST:
        return "step"
    centred = course - course.mean()
    power = max(float(centred @ centred), 1e-300)
    if read is not None and len(course) * float(np.var(read[present])) < _UNRELATED * power:
        return "replay"
    white = float(centred[1:] @ centred[:-1]) / power
    return "noise" if white < _WHITE else "free"
