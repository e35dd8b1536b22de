"""min w'S w / 2 - D'w with some weights not negative, by block pivoting (Kim & Park 2011).

All streams on the wrong side of their condition change sides at once; where that does not help for a while only the
last of them does (Murty 1974), which always ends. So a few small factorisations give the exact solution.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from eccaht.base.arrays import Array
from eccaht.streams.measurements.region import Mask

_PATIENCE = 3  # exchanges of all that may fail to help
_ROUNDING = 1e-12


def nonnegative_solution(S: Array, D: Array, signed: Mask) -> Array | None:
    """Return the minimiser, w >= 0 where `signed`; None where rounding keeps the pivots from settling."""
    n = D.size
    inside = ~signed | (D > 0.0)
    fewest, patience = n + 1, _PATIENCE
    tolerance = _ROUNDING * float(np.abs(D).max())
    for _ in range(20 + 10 * n):
        w, places = np.zeros(n), np.flatnonzero(inside)
        if places.size:
            try:
                factor = cho_factor(S[np.ix_(places, places)], check_finite=False)
            except LinAlgError:
                return None
            w[places] = cho_solve(factor, D[places], check_finite=False)
        pull = D - S[:, places] @ w[places]
        wrong = np.where(inside, signed & (w < 0.0), pull > tolerance)
        count = int(wrong.sum())
        if count == 0:
            w[places] += cho_solve(factor, pull[places], check_finite=False) if places.size else 0.0
            return np.where(signed, np.maximum(w, 0.0), w)
        if count < fewest:
            fewest, patience = count, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            wrong[: int(np.flatnonzero(wrong)[-1])] = False
        inside = inside ^ wrong
    return None
