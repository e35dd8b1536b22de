"""Where verdicts change: the one place that checks, pages and docs/diagnosis.md take their limits from."""

from __future__ import annotations

import math

import numpy as np

from eccaht.arrays import Array
from eccaht.diagnose.verdicts import Verdict

# pairs are (ok up to, not fit above), or (ok from, not fit below) where less is worse
MOST = 0.9  # a limit on all sensors or pairs but the odd ones out is a limit on this quantile
WINDOWS = (10.0, 3.0)  # independent windows for each sensor
TIME = (1.3, 3.0)  # integrated autocorrelation time, in windows
DRIFT = (0.1, 0.5)  # share of the variance that is slow: of any sensor, of half of them
STABLE = (1.5, 4.0)  # ratio of noise variances between the halves
NORMAL = (0.05, 0.5)  # deviation of a sensor; share of the sensors that deviate
DUPLICATE = (0.99, 0.9999)  # correlation
CONDITION = (1e4, 1e8)
RANK = 0.05  # of the number of sensors
STUCK = (0.05, 0.3)  # share of the history
IMPUTED = (0.05, 0.5)  # share of a sensor's readings
LATE = 0.5  # not fit if more than this share of the simulated searches does not end right
WRONG = 0.2  # caution if more than this share of the announced sets is wrong


def time_limits(n_windows: int) -> tuple[float, float]:
    """Of the integrated autocorrelation time; white noise of few windows stays below."""
    tolerated = max(TIME[0], 1.0 + 8.0 / math.sqrt(n_windows))
    return tolerated, max(TIME[1], tolerated + 1.0)


def stable_limits(chance: float) -> tuple[float, float]:
    """Of the ratio between the halves, where logarithms differ by so much by chance."""
    tolerated = max(STABLE[0], math.exp(chance))
    return tolerated, max(STABLE[1], tolerated + 1.0)


def drift_verdict(share: Array) -> Verdict:
    """On the slow share of every sensor's variance."""
    if float(np.median(share)) > DRIFT[1]:
        return "not fit"
    return "caution" if float(share.max()) > DRIFT[0] else "ok"
