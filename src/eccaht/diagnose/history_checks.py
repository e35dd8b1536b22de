"""Checks of the history: enough, independent, without drift, of one covariance; docs/diagnosis.md has the reasons."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from eccaht.arrays import Array
from eccaht.diagnose import remedies
from eccaht.diagnose.sensor_checks import check_condition, check_normality
from eccaht.diagnose.thresholds import DRIFT, MOST, WINDOWS, drift_verdict, stable_limits, time_limits
from eccaht.diagnose.verdicts import ALPHA, Check, advice, broken_promise, culprits, grade, listed, percent
from eccaht.diagnose.view import ModelView

_LEAST_ALPHA = 1e-5  # nobody is told to ask for less


def check_windows(seen: ModelView) -> Check:
    """Independent windows for each sensor: with T of them, K sensors, noise is underestimated by 1 / (1 - K/T)^2."""
    independent = seen.n_windows / float(np.median(seen.memory.time_of_products))
    ratio = independent / seen.size
    verdict = grade(ratio, *WINDOWS)
    factor = 1.0 / (1.0 - 1.0 / ratio) ** 2 if ratio > 1.0 else np.inf
    cost = f"{factor:.3g} times" if np.isfinite(factor) and factor < 100 else "without bound"
    meaning = f"{seen.n_windows} windows, worth {independent:.0f} independent ones, for {seen.size} sensors. "
    meaning += f"Without shrinkage the noise of a measurement would be underestimated {cost}."
    limits = f"ok from {WINDOWS[0]:g}, not fit below {WINDOWS[1]:g}"
    action, most = "", int(independent / WINDOWS[0])
    if verdict != "ok":
        action = f"Calibrate on a history at least {WINDOWS[0] / ratio:.2g} times as long"
        action += f", or on at most {most} sensors (`--columns`)." if most >= 2 else "."
    return Check("enough windows", ratio, f"{ratio:.3g} per sensor", verdict, limits, meaning, action)


def check_independence(seen: ModelView) -> Check:
    """Integrated autocorrelation time of the windows, which 9 of 10 sensors do not exceed."""
    time = float(np.quantile(seen.memory.time, MOST))
    tolerated, too_long = time_limits(seen.n_windows)
    verdict = grade(time, tolerated, too_long)
    sensors = culprits(seen.names, seen.memory.time, tolerated) if verdict != "ok" else ()
    meaning = f"For 9 of 10 sensors at most {time:.3g} consecutive windows are worth one independent window."
    action = ""
    if verdict != "ok":
        meaning += f" A rule that promises an error of {percent(ALPHA)} then errs in "
        meaning += f"{percent(broken_promise(time))} of searches or more. Slowest: {listed(sensors)}."
    if verdict != "ok" and seen.advise:
        several = (check_windows, check_independence, check_drift, check_stability, check_normality, check_condition)
        action = remedies.longer_windows(seen, several, verdict)
        if ALPHA**time > _LEAST_ALPHA:
            action += f", or identify with `--alpha {ALPHA**time:.1g}` where {ALPHA:g} is meant"
        action += "."
    limits = f"ok up to {tolerated:.3g}, not fit above {too_long:.3g}"
    return Check("independent windows", time, f"{time:.3g} windows", verdict, limits, meaning, action, sensors, time)


def check_drift(seen: ModelView) -> Check:
    """Share of a sensor's variance that is slower than the windows' memory: an offset that no averaging removes."""
    share, _ = seen.drift
    top = float(share.max())
    verdict = drift_verdict(share)
    sensors = culprits(seen.names, share, DRIFT[0])
    offset = float(np.sqrt(share * seen.variance).max())
    meaning = "Means of consecutive stretches of the history move no more than the memory between windows explains."
    if top > 0.0:
        meaning = f"The means of consecutive stretches move: up to {percent(top)} of a sensor's variance is slow."
    action = ""
    if verdict != "ok":
        meaning += f" During one search that is a constant offset of {offset:.2g} robust units, which looks like an "
        meaning += f"anomaly: shifts below about {3 * offset:.2g} cannot be told from it. Drifting: {listed(sensors)}."
        action = advice(
            {"leave the worst out": remedies.exclusion(seen, check_drift, sensors, verdict)} if seen.advise else {},
            f"search for shifts well above {offset:.2g}",
            untried="calibrate on the state of operation that is searched (`--start`, `--stop`)",
        )
    limits = f"ok up to {percent(DRIFT[0])} in every sensor, not fit above {percent(DRIFT[1])} in half of them"
    return Check("drift", top, f"{percent(top)} of the variance", verdict, limits, meaning, action, sensors)


def check_stability(seen: ModelView) -> Check:
    """Noise of the method's own measurements in one half over that in the other, not exceeded by 9 of 10 pairs."""
    # log variances estimated from T/2 windows each differ by sqrt(8/T), and the quantile itself is uncertain
    chance = 1.5 * ndtri(0.5 + 0.5 * MOST) * np.sqrt(8.0 * np.median(seen.memory.time_of_products) / seen.n_windows)
    tolerated, too_large = stable_limits(float(chance))
    limits = f"ok up to {tolerated:.3g}, not fit above {too_large:.3g}"
    name = "stable covariance"
    if not seen.has_halves:
        meaning = "Not computed: models of more than 500 sensors do not keep the covariances of their halves."
        action = "Calibrate on each half (`--start`, `--stop`) with fewer sensors (`--columns`) and diagnose both."
        return Check(name, None, "unknown", "caution", limits, meaning, action)
    first, second = pair_variances(seen)
    gap = np.abs(np.log(second) - np.log(first))
    several = gap[np.triu_indices(seen.size, 1)]
    ratio = float(np.exp(np.quantile(several, MOST))) if several.size else 1.0
    typical = np.exp(np.median(gap, axis=1))
    verdict = grade(ratio, tolerated, too_large)
    sensors = culprits(seen.names, typical, tolerated) if verdict != "ok" else ()
    meaning = "The noise of the measurements that separate two sensors differs between the two halves of the history "
    meaning += f"by a factor of at most {ratio:.3g} for 9 of 10 pairs."
    action = ""
    if verdict != "ok":
        meaning += f" Calibrated on the quieter half, a rule that promises {percent(ALPHA)} errs in "
        meaning += f"{percent(broken_promise(ratio))} of searches or more in the other."
        meaning += f" Most concerned: {listed(sensors)}." if sensors else ""
    if verdict != "ok" and seen.advise:
        action = advice(
            {
                "rely less on exact cancellation": remedies.ridge(seen, check_stability, verdict),
                "leave the most concerned out": remedies.exclusion(seen, check_stability, sensors, verdict),
            },
            untried="calibrate on one state of operation (`--start`, `--stop`)",
        )
    return Check(name, ratio, f"factor {ratio:.3g}", verdict, limits, meaning, action, sensors, ratio)


def pair_variances(seen: ModelView) -> tuple[Array, Array]:
    """c'S c in each half, (K, K), for the model's unlimited pair designs c = S^-1 (e_i - e_j); 1 on the diagonal."""
    inverse = seen.model.covariance.solve(np.eye(seen.size))
    variances = []
    for half in seen.history.half_covariances:
        Q = inverse.T @ half @ inverse
        own = Q.diagonal()
        variance = own[:, None] + own - Q - Q.T
        variance = np.maximum(variance, np.finfo(float).eps * (own[:, None] + own) + np.finfo(float).tiny)
        np.fill_diagonal(variance, 1.0)
        variances.append(variance)
    return variances[0], variances[1]
