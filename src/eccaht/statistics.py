"""Numbers derived from records: the only place where F1 and delays are computed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eccaht.arrays import Array


def f1_score(hits: ArrayLike, n_decided: int, n_anomalies: int) -> Array:
    """F1 = 2 hits / (decided + anomalous), elementwise.

    >>> f1_score([0, 2, 3], 3, 3).round(3)
    array([0.   , 0.667, 1.   ])
    """
    return 2.0 * np.asarray(hits, dtype=float) / (n_decided + n_anomalies)


def first_reached(curve: ArrayLike, level: float = 0.95) -> int | None:
    """Measurements until the curve (one value a measurement) is at `level` for the first time; None if never.

    >>> first_reached([0.0, 1.0, 0.5, 1.0]), first_reached([0.0])
    (2, None)
    """
    above = _above(curve, level)
    return int(above.argmax()) + 1 if above.any() else None


def reached_for_good(curve: ArrayLike, level: float = 0.95) -> int | None:
    """Measurements until the curve is at `level` and never below it again; None if it ends below.

    >>> reached_for_good([0.0, 1.0, 0.5, 1.0]), reached_for_good([1.0, 0.0])
    (4, None)
    """
    above = _above(curve, level)
    if above.size == 0 or not above[-1]:
        return None
    below = np.flatnonzero(~above)
    return int(below[-1]) + 2 if below.size else 1


def _above(curve: ArrayLike, level: float) -> NDArray[np.bool_]:
    above: NDArray[np.bool_] = np.asarray(curve, dtype=float) >= level
    return above
