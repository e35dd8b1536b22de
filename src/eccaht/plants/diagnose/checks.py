"""The checks of a model, in reading order; docs/explanation/diagnosis.md has the reasons for the limits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from eccaht.base.arrays import Array
from eccaht.base.presentation.text import listed, percent
from eccaht.plants.diagnose.view import (
    ALPHA,
    CONDITION,
    DRIFT,
    DUPLICATE,
    IMPUTED,
    MOST,
    NORMAL,
    RANK,
    STABLE,
    STUCK,
    TIME,
    WINDOWS,
    Check,
    ModelView,
    Test,
    Verdict,
    VerdictLimits,
    actual_error,
    advice,
    exclusion,
    longer_windows,
    ridge,
)

_LEAST_ALPHA = 1e-5  # no smaller error level is ever suggested
_plain, _brief = "{:g}".format, "{:.3g}".format


def check_windows(view: ModelView) -> Check:
    """Independent windows for each sensor: with T of them, K sensors, noise is underestimated by 1 / (1 - K/T)^2."""
    independent = view.n_windows / float(np.median(view.memory.time_of_products))
    ratio = independent / view.size
    verdict = WINDOWS.verdict(ratio)
    factor = 1.0 / (1.0 - 1.0 / ratio) ** 2 if ratio > 1.0 else np.inf
    cost = f"{factor:.3g} times" if factor < 100 else "without bound"
    meaning = f"{view.n_windows} windows, worth {independent:.0f} independent ones, for {view.size} sensors. "
    meaning += f"Without shrinkage the noise of a measurement would be underestimated {cost}."
    action, most = "", int(independent / WINDOWS.ok)
    if verdict != "ok":
        action = f"Calibrate on a history at least {WINDOWS.ok / ratio:.2g} times as long"
        action += f", or on at most {most} sensors (`--columns`)." if most >= 2 else "."
    return Check("enough windows", ratio, f"{ratio:.3g} per sensor", verdict, WINDOWS.stated(_plain), meaning, action)


def check_independence(view: ModelView) -> Check:
    """The integrated autocorrelation time of windows that 9 of 10 sensors do not exceed."""
    time, limits = float(np.quantile(view.memory.time, MOST)), TIME.widened(1.0 + 8.0 / math.sqrt(view.n_windows))
    verdict = limits.verdict(time)
    sensors = _above(view.names, view.memory.time, limits.ok) if verdict != "ok" else ()
    meaning = f"For 9 of 10 sensors at most {time:.3g} consecutive windows are worth one independent window."
    action = ""
    if verdict != "ok":
        meaning += f" A rule with a nominal error rate of {percent(ALPHA)} then errs in "
        meaning += f"{percent(actual_error(time))} of searches or more. Slowest: {listed(sensors)}."
    if verdict != "ok" and view.advise:
        together = (check_windows, check_independence, check_drift, check_stability, check_normality, check_condition)
        action = longer_windows(view, together, verdict)
        if ALPHA**time > _LEAST_ALPHA:
            action += f", or identify with `--alpha {ALPHA**time:.1g}` where {ALPHA:g} is meant"
        action += "."
    shown = f"{time:.3g} windows"
    return Check("independent windows", time, shown, verdict, limits.stated(_brief), meaning, action, sensors, time)


def check_drift(view: ModelView) -> Check:
    """Share of a sensor's variance that is slower than the windows' memory: an offset that no averaging removes."""
    share, _ = view.drift
    top = float(share.max())
    verdict: Verdict = "not fit" if np.median(share) > DRIFT.not_fit else "caution" if top > DRIFT.ok else "ok"
    sensors = _above(view.names, share, DRIFT.ok)
    offset = float(np.sqrt(share * view.variance).max())
    meaning = "Means of consecutive stretches of the history move no more than the memory between windows explains."
    if top > 0.0:
        meaning = f"The means of consecutive stretches move: up to {percent(top)} of a sensor's variance is slow."
    action = ""
    if verdict != "ok":
        meaning += f" During one search that is a constant offset of {offset:.2g} robust units, which looks like an "
        meaning += f"anomaly: shifts below about {3 * offset:.2g} cannot be distinguished from it. "
        meaning += f"Drifting: {listed(sensors)}."
        action = advice(
            {"leave the worst out": exclusion(view, check_drift, sensors, verdict)},
            f"search for shifts well above {offset:.2g}",
            untried="calibrate on the state of operation that is searched (`--start`, `--stop`)",
        )
    limits = f"ok up to {percent(DRIFT.ok)} in every sensor, not fit above {percent(DRIFT.not_fit)} in half of them"
    return Check("drift", top, f"{percent(top)} of the variance", verdict, limits, meaning, action, sensors)


def check_stability(view: ModelView) -> Check:
    """The ratio between the noise of a pair measurement in the two halves that 9 of 10 pairs do not exceed."""
    # log variances estimated from T/2 windows each differ by sqrt(8/T), and the quantile itself is uncertain
    chance = 1.5 * ndtri(0.5 + 0.5 * MOST) * np.sqrt(8.0 * np.median(view.memory.time_of_products) / view.n_windows)
    limits = STABLE.widened(math.exp(chance))
    name, stated = "stable covariance", limits.stated(_brief)
    if not view.has_halves:
        meaning = "Not computed: models of more than 500 sensors do not keep the covariances of their halves."
        action = "Calibrate on each half (`--start`, `--stop`) with fewer sensors (`--columns`) and diagnose both."
        return Check(name, None, "unknown", "caution", stated, meaning, action)
    first, second = pair_variances(view)
    gap = np.abs(np.log(second) - np.log(first))
    pairs = gap[np.triu_indices(view.size, 1)]
    ratio = float(np.exp(np.quantile(pairs, MOST))) if pairs.size else 1.0
    verdict = limits.verdict(ratio)
    sensors = _above(view.names, np.exp(np.median(gap, axis=1)), limits.ok) if verdict != "ok" else ()
    meaning = "The noise of the measurements that separate two sensors differs between the two halves of the history "
    meaning += f"by a factor of at most {ratio:.3g} for 9 of 10 pairs."
    action = ""
    if verdict != "ok":
        meaning += f" Calibrated on the quieter half, a rule with a nominal error rate of {percent(ALPHA)} errs in "
        meaning += f"{percent(actual_error(ratio))} of searches or more in the other."
        meaning += f" Most concerned: {listed(sensors)}." if sensors else ""
        action = advice(
            {
                "rely less on exact cancellation": ridge(view, check_stability, verdict),
                "leave the most concerned out": exclusion(view, check_stability, sensors, verdict),
            },
            untried="calibrate on one state of operation (`--start`, `--stop`)",
        )
    return Check(name, ratio, f"factor {ratio:.3g}", verdict, stated, meaning, action, sensors, ratio)


def pair_variances(view: ModelView) -> tuple[Array, Array]:
    """c'S c in each half, (K, K), for the model's unlimited pair designs c = S^-1 (e_i - e_j); 1 on the diagonal."""
    inverse = view.model.covariance.solve(np.eye(view.size))
    variances = []
    for half in view.history.half_covariances:
        Q = inverse.T @ half @ inverse
        own = Q.diagonal()
        variance = own[:, None] + own - Q - Q.T
        variance = np.maximum(variance, np.finfo(float).eps * (own[:, None] + own) + np.finfo(float).tiny)
        np.fill_diagonal(variance, 1.0)
        variances.append(variance)
    return variances[0], variances[1]


def check_normality(view: ModelView) -> Check:
    """Share of sensors whose quantile-quantile plot is far from a line."""
    sensors = _above(view.names, view.deviation, NORMAL.ok)
    share = len(sensors) / view.size
    verdict: Verdict = "not fit" if share > NORMAL.not_fit else "caution" if sensors else "ok"
    meaning = f"{len(sensors)} of {view.size} sensors {'is' if len(sensors) == 1 else 'are'} far from normal."
    action = ""
    if sensors:
        shapes = [f"{name} ({_shape(view, view.names.index(name))})" for name in sensors]
        meaning += " Evidence is computed as if readings were normal: rare large values count for too much. "
        meaning += f"Worst: {listed(shapes)}."
        action = advice(
            {"leave the worst out": exclusion(view, check_normality, sensors, verdict)},
            untried="calibrate on one state of operation (`--start`, `--stop`), or with longer windows (`--window`)",
        )
    limits = f"ok if no sensor deviates by more than {NORMAL.ok:g}, not fit if more than {percent(NORMAL.not_fit)} do"
    shown = f"{percent(share)} of sensors deviate"
    return Check("normal readings", share, shown, verdict, limits, meaning, action, sensors)


def _shape(view: ModelView, k: int) -> str:
    if view.reported("kind", "")[k] == "status":
        return "a status"
    skew, kurtosis = float(view.history.skewness[k]), float(view.history.kurtosis[k])
    if kurtosis < -1.2:
        return "two levels"
    if abs(skew) > 1.0 and kurtosis < 3.0 * skew**2:
        return f"skewed, {skew:+.2g}"
    return f"heavy tails, kurtosis {kurtosis:.2g}" if kurtosis > 1.0 else "odd shape"


def check_duplicates(view: ModelView) -> Check:
    """The strongest correlation of two sensors."""
    rows, columns = np.triu_indices(view.size, 1)
    strength = np.abs(view.observed)[rows, columns]
    order = np.argsort(-strength, kind="stable")
    pairs = [(int(rows[k]), int(columns[k])) for k in order if strength[k] > DUPLICATE.ok]
    top = float(strength.max(initial=0.0))
    verdict = DUPLICATE.verdict(top)
    meaning = "There is one sensor only."
    if order.size:
        meaning = f"The most similar sensors are {view.names[rows[order[0]]]} and {view.names[columns[order[0]]]}."
    action, copies = "", tuple(dict.fromkeys(view.names[j] for _, j in pairs))
    if pairs:
        equal = [f"{view.names[i]} = {'-' if view.observed[i, j] < 0 else ''}{view.names[j]}" for i, j in pairs]
        meaning = f"Almost the same reading: {listed(equal)}. If one is computed from the other, both move in an "
        meaning += "anomaly, and the number of anomalies is not what was given."
        tried = exclusion(view, check_duplicates, copies, verdict)
        action = advice({"leave the copies out": tried}, "count both as anomalous")
    shown, limits = f"correlation {top:.5g}", DUPLICATE.stated(_plain)
    return Check("near-duplicate sensors", top, shown, verdict, limits, meaning, action, copies)


def check_condition(view: ModelView) -> Check:
    """Largest over smallest eigenvalue of the correlations: the noise that combining sensors can cancel."""
    low, high = float(view.eigenvalues[0]), float(view.eigenvalues[-1])
    number = high / max(low, np.finfo(float).tiny)
    verdict = CONDITION.verdict(number)
    meaning = f"The quietest combination of sensors has {1 / np.sqrt(number):.2g} of the noise of the loudest."
    action: str = ""
    sensors: tuple[str, ...] = ()
    if verdict != "ok":
        vector = np.abs(np.linalg.eigh(view.believed)[1][:, 0])
        sensors = _above(view.names, vector, 0.5 * float(vector.max()))
        meaning += " Anything the model does not know (drift, rounding, the resolution of a sensor) of that size "
        meaning += f"spoils a measurement that relies on it. It is made of {listed(sensors)}."
        action = advice(
            {
                "leave one of them out": exclusion(view, check_condition, sensors[:1], verdict),
                "calibrate with more noise in every sensor": ridge(view, check_condition, verdict),
            },
            untried="calibrate with `--estimator factor`",
        )
    limits = CONDITION.stated("{:.0e}".format)
    return Check("condition number", number, f"{number:.3g}", verdict, limits, meaning, action, sensors)


def check_rank(view: ModelView) -> Check:
    """Effective rank (Shannon) of the correlations."""
    rank = view.rank
    verdict = VerdictLimits(RANK * view.size, -np.inf).verdict(rank)
    meaning = f"The noise has about {rank:.3g} independent directions for {view.size} sensors: "
    meaning += "the fewer, the more of it can be cancelled."
    action = ""
    if verdict != "ok":
        meaning += " Nearly all noise is common; what separates sensors are small differences, which must be well "
        meaning += "known."
        action = "Trust the condition number and the stability of the covariance first; see the expected number of "
        action += "measurements (`--anomalies`, `--shift`)."
    limits = f"ok from {percent(RANK)} of the sensors"
    return Check("effective rank", rank, f"{rank:.3g} of {view.size}", verdict, limits, meaning, action)


def check_stuck(view: ModelView) -> Check:
    """The longest share of the history in which a sensor repeated one value; statuses are not counted."""
    status = np.array([kind == "status" for kind in view.reported("kind", "")])
    share = np.where(status, 0.0, view.history.stuck)
    top, sensors = float(share.max()), _above(view.names, share, STUCK.ok)
    verdict = STUCK.verdict(top)
    meaning = f"No sensor repeated one value for more than {percent(top)} of the history."
    meaning += f" Statuses are not counted ({int(status.sum())})." if status.any() else ""
    action = ""
    if sensors:
        meaning = f"{listed(sensors)} stood still, for up to {percent(top)} of the history. A sensor that stands still "
        meaning += "looks quiet, and is trusted too much when it moves again."
        tried = exclusion(view, check_stuck, sensors, verdict)
        action = advice({"leave them out": tried}, untried="calibrate on the time before (`--start`, `--stop`)")
    shown = f"{percent(top)} of the time"
    return Check("stuck sensors", top, shown, verdict, STUCK.stated(percent), meaning, action, sensors)


def check_imputed(view: ModelView) -> Check:
    """The largest share of a sensor's readings that were missing and filled in."""
    share = np.array(view.reported("imputed", 0.0))
    top, sensors = float(share.max()), _above(view.names, share, IMPUTED.ok)
    verdict = IMPUTED.verdict(top)
    meaning = f"At most {percent(top)} of a sensor's readings were missing and filled in."
    action = ""
    if sensors:
        meaning += f" Filled readings are smoother than real ones: {listed(sensors)} look quieter than they are."
        tried = exclusion(view, check_imputed, sensors, verdict)
        action = advice({"leave them out": tried}, untried="calibrate on a stretch without gaps (`--start`, `--stop`)")
    shown = f"{percent(top)} of a sensor"
    return Check("imputed readings", top, shown, verdict, IMPUTED.stated(percent), meaning, action, sensors)


def _above(names: Sequence[str], badness: Array, limit: float) -> tuple[str, ...]:
    """The sensors whose badness exceeds the limit, worst first."""
    order = np.argsort(-badness, kind="stable")
    return tuple(names[k] for k in order if badness[k] > limit)


CHECKS: tuple[Test, ...] = (
    check_windows,
    check_independence,
    check_drift,
    check_stability,
    check_normality,
    check_duplicates,
    check_condition,
    check_rank,
    check_stuck,
    check_imputed,
)
