"""What checks and pictures derive from a model, what a check answers, and which remedies would help.

The limits of all verdicts are here, once; docs/explanation/diagnosis.md gives the reasons for them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from eccaht.base.arrays import Array
from eccaht.base.clock import show_duration
from eccaht.plants.model.estimators import estimate
from eccaht.plants.model.history import summarise
from eccaht.plants.model.model import Model
from eccaht.plants.model.model_file import PROBABILITIES
from eccaht.streams import Dense, Diagonal, effective_rank

_TINY = np.finfo(float).tiny
VERDICTS: tuple[Verdict, ...] = ("ok", "caution", "not fit")  # from good to bad
ALPHA = 0.05  # the nominal error rate for which examples are computed
MOST = 0.9  # where a few sensors or pairs may be worse, the limit is on this quantile of all of them
RANK = 0.05  # of the number of sensors
LATE = 0.5  # not fit if more than this share of the simulated searches does not end right
WRONG = 0.2  # caution if more than this share of the simulated searches would stop with a wrong set
RIDGES = (0.01, 0.1)
EXCLUDED = 12  # sensors that a suggested option leaves out at most
# lengths that people give windows, in seconds: 5 s, 1 min, 15 min, 2 h, up to a week
_STEPS, _HOURS, _DAYS = (1, 2, 5, 10, 15, 20, 30, 60), (1, 2, 3, 4, 6, 8, 12, 24), range(2, 8)
_LENGTHS = sorted({*_STEPS, *(60 * x for x in _STEPS), *(3600 * x for x in _HOURS), *(86400 * x for x in _DAYS)})


@dataclass(frozen=True)
class Autocorrelations:
    """What the autocorrelations of K sensors up to lag L say.

    fast: (L+1, K), autocorrelation of the part that dies out, 0 from where it is lost in its sampling error.
    time: (K,), its integrated autocorrelation time, in windows: that many windows are worth one independent one.
    plateau: (K,), share of the variance whose autocorrelation has not died out at lag L.
    """

    fast: Array
    time: Array
    plateau: Array

    @property
    def time_of_products(self) -> Array:
        """Windows that are worth one independent one for a variance or covariance, 1 + 2 sum rho_k^2, (K,)."""
        return 2.0 * (self.fast**2).sum(axis=0) - 1.0

    def variance_of_mean(self, m: int) -> Array:
        """Variance of the mean of m consecutive windows, over that of one: [1 + 2 sum (1 - k/m) rho_k] / m, (K,)."""
        lags = np.arange(1, min(m, len(self.fast)))
        total = 1.0 + 2.0 * (1.0 - lags / m) @ self.fast[lags]
        return np.maximum(total, 1.0) / m  # negative correlation is not counted as a gain


def memory(autocorrelation: Array, n_windows: int) -> Autocorrelations:
    """Split (L+1, K) autocorrelations of n_windows windows into a part that dies out and a part that does not.

    The plateau is the mean over the last quarter of the lags where that exceeds three standard errors of white noise.
    What is left is summed by pairs of lags until a pair is within its own sampling error (Geyer's initial sequence).
    """
    lags, size = len(autocorrelation) - 1, autocorrelation.shape[1]
    if lags < 2:
        return Autocorrelations(np.ones((1, size)), np.ones(size), np.zeros(size))
    error = 1.0 / np.sqrt(n_windows)
    level = autocorrelation[-max(lags // 4, 1) :].mean(axis=0)
    plateau = np.where(level > 3.0 * error, np.minimum(level, 0.999), 0.0)
    fast = (autocorrelation - plateau) / (1.0 - plateau)
    fast[0] = 1.0
    pairs = fast[: 2 * ((lags + 1) // 2)].reshape(-1, 2, size).sum(axis=1)
    alive = np.logical_and.accumulate(pairs > 2.5 * np.sqrt(2.0) * error, axis=0)
    alive[0] = True
    kept = np.zeros(fast.shape, dtype=bool)
    kept[: 2 * len(alive)] = np.repeat(alive, 2, axis=0)
    fast = np.where(kept, fast, 0.0)
    return Autocorrelations(fast, np.maximum(2.0 * fast.sum(axis=0) - 1.0, 1.0), plateau)


class ModelView:
    """What the checks and pictures look at, each computed once; advise: whether checks try out what would help."""

    def __init__(self, model: Model, *, advise: bool = True) -> None:
        self.model, self.history, self.advise = model, model.summary, advise
        self.names, self.size, self.n_windows = model.names, len(model.names), model.n_windows

    @cached_property
    def covariance(self) -> Array:
        return self.model.covariance.dense()

    @cached_property
    def believed(self) -> Array:
        """Correlations of the model, (K, K)."""
        return _correlation(self.covariance)

    @cached_property
    def observed(self) -> Array:
        """Correlations before any shrinkage: within the halves where the model keeps them, else the model's own."""
        return _correlation(self.history.half_covariances.mean(axis=0)) if self.has_halves else self.believed

    @cached_property
    def eigenvalues(self) -> Array:
        return np.asarray(np.linalg.eigvalsh(self.believed), dtype=np.float64)

    @cached_property
    def rank(self) -> float:
        """Effective rank (Shannon) of the model's correlations."""
        return effective_rank(Diagonal(np.maximum(self.eigenvalues, np.finfo(float).eps)))

    @property
    def has_halves(self) -> bool:
        """Whether the model keeps the covariances of the two halves of its history (up to 500 sensors)."""
        return len(self.history.half_covariances) == 2

    def reported(self, what: str, otherwise: Any) -> list[Any]:
        """What the cleaning of the history reported of each sensor's column."""
        kept = {column.name: getattr(column, what) for column in self.model.columns if column.kept}
        return [kept.get(name, otherwise) for name in self.names]

    @cached_property
    def memory(self) -> Autocorrelations:
        """Autocorrelation of the windows, its short part and its plateau."""
        return memory(self.history.autocorrelation, self.n_windows)

    @cached_property
    def variance(self) -> Array:
        """Variance of the windows before any shrinkage, (K,)."""
        if not self.has_halves:
            return self.covariance.diagonal()
        means, half = self.history.block_means, len(self.history.block_means) // 2
        between = means[:half].mean(axis=0) - means[half:].mean(axis=0) if half else np.zeros(self.size)
        within: Array = self.history.half_covariances.diagonal(axis1=1, axis2=2).mean(axis=0)
        return within + 0.25 * between**2

    @cached_property
    def deviation(self) -> Array:
        """1 - W' of each sensor: how far its quantile-quantile plot is from a line, less what chance does, (K,)."""
        z, q = ndtri(PROBABILITIES), self.history.quantiles
        z, q = z / np.linalg.norm(z), q - q.mean(axis=0)  # the probabilities are symmetric: z has mean 0
        fit = (z @ q) ** 2 / np.maximum((q**2).sum(axis=0), _TINY)
        chance = 6.0 * self.memory.time / self.n_windows  # exceeded by one normal sensor in several hundred
        return np.maximum(1.0 - fit - chance, 0.0)

    @cached_property
    def drift(self) -> tuple[Array, Array]:
        """Shares of variance between stretches of the history, each (K,): beyond short memory, and due to it."""
        means, sizes = self.history.block_means, self.history.block_sizes
        if len(sizes) < 3:
            return np.zeros(self.size), np.zeros(self.size)
        squares = (means - sizes @ means / sizes.sum()) ** 2
        free = len(sizes) - 1
        expected = (1.0 - self.memory.plateau) * self.memory.variance_of_mean(round(sizes.mean()))
        between = (sizes @ squares) / sizes.mean() / free / np.maximum(self.variance, _TINY)
        significant = free * between > chi2.isf(1e-3 / self.size, free) * expected
        return np.where(significant, np.clip(between - expected, 0.0, 1.0), 0.0), expected


def _correlation(S: Array) -> Array:
    root = np.sqrt(np.maximum(S.diagonal(), _TINY))
    correlation: Array = S / root / root[:, None]
    np.fill_diagonal(correlation, 1.0)
    return correlation


# -- verdicts ------------------------------------------------------------------------------------------

Verdict = Literal["ok", "caution", "not fit"]


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

    def widened(self, by_chance: float) -> VerdictLimits:
        """Where a number is bad when large: what chance alone shows is ok."""
        ok = max(self.ok, by_chance)
        return VerdictLimits(ok, max(self.not_fit, ok + 1.0))


WINDOWS = VerdictLimits(10.0, 3.0)  # independent windows for each sensor
TIME = VerdictLimits(1.3, 3.0)  # integrated autocorrelation time, in windows
DRIFT = VerdictLimits(0.1, 0.5)  # share of the variance that is slow: of any sensor, of half of them
STABLE = VerdictLimits(1.5, 4.0)  # ratio of noise variances between the halves
NORMAL = VerdictLimits(0.05, 0.5)  # deviation of a sensor; share of the sensors that deviate
DUPLICATE = VerdictLimits(0.99, 0.9999)  # correlation
CONDITION = VerdictLimits(1e4, 1e8)
STUCK = VerdictLimits(0.05, 0.3)  # share of the history
IMPUTED = VerdictLimits(0.05, 0.5)  # share of a sensor's readings


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


# -- remedies ------------------------------------------------------------------------------------------

Test = Callable[[ModelView], Check]


def exclusion(view: ModelView, check: Test, sensors: Sequence[str], now: Verdict) -> str:
    """The option that leaves these sensors out, at most a dozen; "" if that does not improve the verdict."""
    out = sensors[:EXCLUDED]
    left = [name for name in view.names if name not in out]
    helps = view.advise and len(left) >= 2 and _improves(check, view.model.of(left), now)
    return f"`--exclude {shlex.quote(','.join(out))}`" if helps else ""


def ridge(view: ModelView, check: Test, now: Verdict) -> str:
    """The smallest ridge that improves the verdict of the check, "" if none does."""
    for size in RIDGES if view.advise else ():
        if size <= view.model.ridge:
            continue
        covariance = Dense(view.covariance + (size - view.model.ridge) * np.eye(view.size))
        if _improves(check, replace(view.model, covariance=covariance, ridge=size), now):
            return f"`--ridge {size:g}`"
    return ""


def longer_windows(view: ModelView, checks: Sequence[Test], now: Verdict) -> str:
    """The window length that improves the independence of windows and worsens no check, or why there is none."""
    before = _verdicts(checks, view.model)
    obstacle, best, seconds = "", now, 0.0
    for length, after in _tried_lengths(view, checks):
        if not _better(after["independent windows"], best):
            continue
        worse = [name for name, verdict in after.items() if _better(before[name], verdict)]
        if not worse:
            best, seconds = after["independent windows"], length
        elif not obstacle:
            obstacle = f"at {show_duration(length)} another check would be worse ({', '.join(worse)})"
        if best == "ok":
            break
    if not seconds:
        obstacle = obstacle or "windows stay dependent at every length that leaves enough of them"
        return f"No length of the window would help: {obstacle}"
    left = round(view.n_windows * view.model.seconds / seconds)
    return f"Calibrate with `--window {show_duration(seconds)}` ({left} windows would be left)"


def _tried_lengths(view: ModelView, checks: Sequence[Test]) -> Iterator[tuple[float, dict[str, Verdict]]]:
    """Longer windows that people use, with the verdicts of all checks on the history cut into them."""
    model, kept = view.model, view.history.coarse
    step = float(view.history.coarse_windows[0]) * model.seconds
    for length in map(float, _LENGTHS):
        m = round(length / step)
        if length < 1.5 * model.seconds or m < 1 or abs(m * step - length) > 1e-6 * length:
            continue
        values = kept[: len(kept) // m * m].reshape(-1, m, view.size).mean(axis=1)
        try:
            mean, covariance = estimate(values, model.estimator, model.ridge)
        except ValueError:  # too few windows, and longer ones leave fewer
            return
        summary = summarise(values, view.history.stuck, view.history.raw_quantiles)
        cut = replace(model, seconds=length, mean=mean, covariance=covariance, summary=summary, n_windows=len(values))
        yield length, _verdicts(checks, cut)


def _verdicts(checks: Sequence[Test], model: Model) -> dict[str, Verdict]:
    view = ModelView(model, advise=False)
    return {check.name: check.verdict for check in (run(view) for run in checks)}


def _improves(check: Test, model: Model, now: Verdict) -> bool:
    return _better(check(ModelView(model, advise=False)).verdict, now)


def _better(one: Verdict, other: Verdict) -> bool:
    return VERDICTS.index(one) < VERDICTS.index(other)


def advice(tried: Mapping[str, str], *others: str, untried: str = "") -> str:
    """What to do: options that were tried and help, advice without a trial, and what cannot be tried with this model.

    >>> advice({"leave it out": "`--exclude a`", "smooth": ""}, untried="give another history")
    'Leave it out (`--exclude a`). Not tried, because it needs more than the model: give another history.'
    """
    text = ", or ".join([*(f"{what} ({option})" for what, option in tried.items() if option), *others])
    text = f"{text[:1].upper()}{text[1:]}." if text else ""
    more = f" Not tried, because it needs more than the model: {untried}." if untried else ""
    return f"{text}{more}".strip()
