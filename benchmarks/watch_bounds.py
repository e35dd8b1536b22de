"""Bounds to put beside the rules: delays of rules that know more than any real one.

Where the set, the size d and the covariance are known, all that a window says is l = d'Q x - d'Q d / 2, the
logarithm of its likelihood ratio: N(-I/2, I) before the change and N(I/2, I) after it, I = d'Q d. Its CUSUM has the
smallest worst mean delay of all rules with as rare false alarms (Moustakides 1986), and the worst moment is a CUSUM of
0, as at the start. Mean times to its alarms solve an integral equation, so that nothing is simulated.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from benchmarks.watch_rules import Flags
from eccaht.base.arrays import Array

_NODES = 80
_LOWEST = 1e-3  # threshold: with a lower one the first window alarms almost surely
_INFORMATION = np.geomspace(0.1, 35.0, 40)  # of a window; with more, the first one is enough


def _log_excess(threshold: float, information: float, every: float) -> float:
    return float(np.log(mean_time(threshold, information, changed=False) / every))


def mean_time(threshold: float, information: float, *, changed: bool) -> float:
    """Windows until a CUSUM that begins at 0 reaches the threshold, in the mean.

    T(u) = 1 + T(0) P(u + l <= 0) + the integral of T(y) p(y - u) from 0 to the threshold.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    y, weights = 0.5 * threshold * np.append(nodes + 1.0, 0.0), 0.5 * threshold * weights
    step = norm((0.5 if changed else -0.5) * information, np.sqrt(information))
    kernel = np.column_stack([weights * step.pdf(y[None, :-1] - y[:, None]), step.cdf(-y)])
    return float(np.linalg.solve(np.eye(len(y)) - kernel, np.ones(len(y)))[-1])


def least_delays(information: Array, every: float) -> Array:
    """Mean delays of CUSUMs with one false alarm every so many windows, by the information of a window, (n,)."""
    return np.exp(np.interp(np.log(information), np.log(_INFORMATION), np.log(_delays(every))))


@cache
def _delays(every: float) -> tuple[float, ...]:
    """Those of _INFORMATION."""
    found = []
    for known in _INFORMATION.tolist():
        if mean_time(_LOWEST, known, changed=False) >= every:
            found.append(1.0)
            continue
        # the mean time to a false alarm is at least exp(threshold)
        threshold = brentq(_log_excess, _LOWEST, np.log(every), args=(known, every))
        found.append(mean_time(threshold, known, changed=True))
    return tuple(found)


class OneStream:
    """The rule of a Bayesian who knows that one stream rises, by how much, but not which.

    The mean over streams of Shiryaev-Roberts statistics, R = (1 + R) exp(l), as a logarithm.
    """

    def __init__(self, covariance: Array, shift: float) -> None:
        self._precision, self._shift = np.linalg.inv(covariance), shift
        self.start(1)

    def start(self, replicas: int) -> None:
        """Forget everything."""
        self._logarithms: Array = np.full((replicas, len(self._precision)), -np.inf, dtype=np.float32)

    def update(self, X: Array) -> Array:
        """The logarithm of the mean."""
        half = (0.5 * self._shift**2 * self._precision.diagonal()).astype(X.dtype)
        ratios = X @ (self._shift * self._precision).astype(X.dtype) - half
        self._logarithms = np.logaddexp(self._logarithms, X.dtype.type(0.0)) + ratios
        return np.logaddexp.reduce(self._logarithms, axis=1, keepdims=True) - np.log(X.shape[1])

    def keep(self, which: Flags) -> None:
        """Go on with some of the replicas."""
        self._logarithms = self._logarithms[which]
