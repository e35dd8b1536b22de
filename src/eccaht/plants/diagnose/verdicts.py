"""The answer of a check, and the limits of all verdicts, which checks, pages and docs/diagnosis.md share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Verdict = Literal["ok", "caution", "not fit"]
VERDICTS: tuple[Verdict, ...] = ("ok", "caution", "not fit")  # from good to bad
ALPHA = 0.05  # the nominal error rate for which examples are computed


@dataclass(frozen=True)
class Check:
    """One question about a model.

    number: what was computed, None where the model does not hold it; shown: the same with its unit, for readers.
    limits: where the verdict changes. meaning: what the number says. action: what to do, "" if nothing.
    sensors: those concerned, worst first.
    factor: variance of the log-likelihood ratios over the variance that a search assumes, 1 where this is not measured.
    """

    name: str
    number: float | None
    shown: str
    verdict: Verdict
    limits: str
    meaning: str
    action: str = ""
    sensors: tuple[str, ...] = ()
    factor: float = 1.0


class VerdictLimits(NamedTuple):
    """Where the verdict on a number changes, be it bad when large (ok < not_fit) or bad when small (ok > not_fit).

    >>> VerdictLimits(1.3, 3.0).verdict(2.0), VerdictLimits(10.0, 3.0).verdict(2.0)
    ('caution', 'not fit')
    >>> VerdictLimits(10.0, 3.0).stated("{:g}".format)
    'ok from 10, not fit below 3'
    """

    ok: float
    not_fit: float

    def verdict(self, number: float) -> Verdict:
        """The verdict on a number; one that lies on a limit is on its better side."""
        sign = 1.0 if self.not_fit > self.ok else -1.0
        return VERDICTS[sum(bool(sign * number > sign * limit) for limit in (self.ok, self.not_fit))]

    def stated(self, show: Callable[[float], str]) -> str:
        upto, above = ("up to", "above") if self.not_fit > self.ok else ("from", "below")
        return f"ok {upto} {show(self.ok)}, not fit {above} {show(self.not_fit)}"


MOST = 0.9  # where a few sensors or pairs may be worse, the limit is on this quantile of all of them
WINDOWS = VerdictLimits(10.0, 3.0)  # independent windows for each sensor
TIME = VerdictLimits(1.3, 3.0)  # integrated autocorrelation time, in windows
DRIFT = VerdictLimits(0.1, 0.5)  # share of the variance that is slow: of any sensor, of half of them
STABLE = VerdictLimits(1.5, 4.0)  # ratio of noise variances between the halves
NORMAL = VerdictLimits(0.05, 0.5)  # deviation of a sensor; share of the sensors that deviate
DUPLICATE = VerdictLimits(0.99, 0.9999)  # correlation
CONDITION = VerdictLimits(1e4, 1e8)
RANK = 0.05  # of the number of sensors
STUCK = VerdictLimits(0.05, 0.3)  # share of the history
IMPUTED = VerdictLimits(0.05, 0.5)  # share of a sensor's readings
LATE = 0.5  # not fit if more than this share of the simulated searches does not end right
WRONG = 0.2  # caution if more than this share of the simulated searches would stop with a wrong set


def time_limits(n_windows: int) -> VerdictLimits:
    """Of the integrated autocorrelation time: values that white noise of `n_windows` windows shows by chance are ok."""
    return _widened(TIME, 1.0 + 8.0 / math.sqrt(n_windows))


def stable_limits(chance: float) -> VerdictLimits:
    """Of the ratio between the halves, where its logarithm reaches `chance` if nothing has changed."""
    return _widened(STABLE, math.exp(chance))


def _widened(limits: VerdictLimits, by_chance: float) -> VerdictLimits:
    ok = max(limits.ok, by_chance)
    return VerdictLimits(ok, max(limits.not_fit, ok + 1.0))


def actual_error(factor: float, alpha: float = ALPHA) -> float:
    """The error of a rule at nominal rate alpha, where log-likelihood ratios have `factor` times the assumed variance.

    A wrong hypothesis gains evidence with drift -I and variance 2 I a measurement, and ever reaches log(1/alpha) with
    probability alpha. With variance 2 I f a random walk reaches it with probability alpha^(1/f). Noise that has f times
    the variance calibrated does this, and so do windows that are worth only 1/f of an independent one. This counts one
    rival; with many the error is larger.

    >>> round(actual_error(2.0), 3)
    0.224
    """
    return float(alpha ** (1.0 / max(factor, 1.0)))
