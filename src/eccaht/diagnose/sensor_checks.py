"""Checks of the sensors and of how they hang together; docs/diagnosis.md has the reasons for the limits."""

from __future__ import annotations

import numpy as np

from eccaht.diagnose import remedies
from eccaht.diagnose.thresholds import CONDITION, DUPLICATE, IMPUTED, NORMAL, RANK, STUCK
from eccaht.diagnose.verdicts import Check, Verdict, advice, culprits, grade, listed, percent
from eccaht.diagnose.view import ModelView


def check_normality(seen: ModelView) -> Check:
    """Share of sensors whose quantile-quantile plot is no line."""
    sensors = culprits(seen.names, seen.deviation, NORMAL[0])
    share = len(sensors) / seen.size
    verdict: Verdict = "not fit" if share > NORMAL[1] else "caution" if sensors else "ok"
    meaning = f"{len(sensors)} of {seen.size} sensors {'is' if len(sensors) == 1 else 'are'} far from normal."
    action = ""
    if sensors:
        places = [seen.names.index(name) for name in sensors]
        told = [f"{name} ({_shape(seen, k)})" for name, k in zip(sensors, places, strict=True)]
        meaning += " ModelView is computed as if readings were normal: rare large values count for too much. "
        meaning += f"Worst: {listed(told)}."
    if sensors and seen.advise:
        action = advice(
            {"leave the worst out": remedies.exclusion(seen, check_normality, sensors, verdict)},
            untried="calibrate on one state of operation (`--start`, `--stop`), or with longer windows (`--window`)",
        )
    limits = f"ok if no sensor deviates by more than {NORMAL[0]:g}, not fit if more than {percent(NORMAL[1])} do"
    return Check(
        "normal readings", share, f"{percent(share)} of sensors deviate", verdict, limits, meaning, action, sensors
    )


def _shape(seen: ModelView, k: int) -> str:
    if seen.kinds[k] == "status":
        return "a status"
    skew, kurtosis = float(seen.history.skewness[k]), float(seen.history.kurtosis[k])
    if kurtosis < -1.2:
        return "two levels"
    if abs(skew) > 1.0 and kurtosis < 3.0 * skew**2:
        return f"skewed, {skew:+.2g}"
    return f"heavy tails, kurtosis {kurtosis:.2g}" if kurtosis > 1.0 else "odd shape"


def check_duplicates(seen: ModelView) -> Check:
    """The strongest correlation of two sensors."""
    size = np.abs(seen.observed) - np.eye(seen.size)
    rows, columns = np.triu_indices(seen.size, 1)
    strength = size[rows, columns]
    order = np.argsort(-strength, kind="stable")
    pairs = [(int(rows[k]), int(columns[k])) for k in order if strength[k] > DUPLICATE[0]]
    top = float(strength.max(initial=0.0))
    verdict = grade(top, *DUPLICATE)
    closest = "" if not len(order) else f"{seen.names[rows[order[0]]]} and {seen.names[columns[order[0]]]}"
    meaning = f"The most similar sensors are {closest}." if closest else "There is one sensor only."
    action, later = "", tuple(dict.fromkeys(seen.names[j] for _, j in pairs))
    if pairs:
        told = [f"{seen.names[i]} = {'-' if seen.observed[i, j] < 0 else ''}{seen.names[j]}" for i, j in pairs]
        meaning = f"Almost the same reading: {listed(told)}. If one is computed from the other, both move in an "
        meaning += "anomaly, and the number of anomalies is not what was given."
        tried = remedies.exclusion(seen, check_duplicates, later, verdict) if seen.advise else ""
        action = advice({"leave the copies out": tried}, "count both as anomalous")
    limits = f"ok up to {DUPLICATE[0]:g}, not fit above {DUPLICATE[1]:g}"
    return Check("near-duplicate sensors", top, f"correlation {top:.5g}", verdict, limits, meaning, action, later)


def check_stuck(seen: ModelView) -> Check:
    """The longest share of the history in which a sensor repeated one value; statuses may."""
    continuous = np.array([kind != "status" for kind in seen.kinds])
    share = np.where(continuous, seen.history.stuck, 0.0)
    top = float(share.max())
    verdict = grade(top, *STUCK)
    sensors = culprits(seen.names, share, STUCK[0])
    meaning = f"No sensor repeated one value for more than {percent(top)} of the history."
    if (~continuous).any():
        meaning += f" Statuses are not counted ({int((~continuous).sum())})."
    action = ""
    if sensors:
        meaning = f"{listed(sensors)} stood still, for up to {percent(top)} of the history. A sensor that stands still "
        meaning += "looks quiet, and is trusted too much when it moves again."
        tried = remedies.exclusion(seen, check_stuck, sensors, verdict) if seen.advise else ""
        action = advice({"leave them out": tried}, untried="calibrate on the time before (`--start`, `--stop`)")
    limits = f"ok up to {percent(STUCK[0])}, not fit above {percent(STUCK[1])}"
    return Check("stuck sensors", top, f"{percent(top)} of the time", verdict, limits, meaning, action, sensors)


def check_imputed(seen: ModelView) -> Check:
    """The largest share of a sensor's readings that were missing and filled in."""
    shares = {column.name: column.imputed for column in seen.model.columns if column.kept}
    share = np.array([shares.get(name, 0.0) for name in seen.names])
    top = float(share.max())
    verdict = grade(top, *IMPUTED)
    sensors = culprits(seen.names, share, IMPUTED[0])
    meaning = f"At most {percent(top)} of a sensor's readings were missing and filled in."
    action = ""
    if sensors:
        meaning += f" Filled readings are smoother than real ones: {listed(sensors)} look quieter than they are."
        tried = remedies.exclusion(seen, check_imputed, sensors, verdict) if seen.advise else ""
        action = advice({"leave them out": tried}, untried="calibrate on a stretch without gaps (`--start`, `--stop`)")
    limits = f"ok up to {percent(IMPUTED[0])}, not fit above {percent(IMPUTED[1])}"
    return Check("imputed readings", top, f"{percent(top)} of a sensor", verdict, limits, meaning, action, sensors)


def check_condition(seen: ModelView) -> Check:
    """Largest over smallest eigenvalue of the correlations: the noise that combining sensors can cancel."""
    low, high = float(seen.eigenvalues[0]), float(seen.eigenvalues[-1])
    number = high / max(low, np.finfo(float).tiny)
    verdict = grade(number, *CONDITION)
    meaning = f"The quietest combination of sensors has {1 / np.sqrt(number):.2g} of the noise of the loudest."
    action: str = ""
    sensors: tuple[str, ...] = ()
    if verdict != "ok":
        vector = np.abs(np.linalg.eigh(seen.believed)[1][:, 0])
        sensors = culprits(seen.names, vector, 0.5 * float(vector.max()))
        meaning += (
            " Anything the model does not know (drift, rounding, the resolution of a sensor) of that size spoils "
        )
        meaning += f"a measurement that relies on it. It is made of {listed(sensors)}."
    if verdict != "ok" and seen.advise:
        action = advice(
            {
                "leave one of them out": remedies.exclusion(seen, check_condition, sensors[:1], verdict),
                "calibrate with more noise in every sensor": remedies.ridge(seen, check_condition, verdict),
            },
            untried="calibrate with `--estimator factor`",
        )
    limits = f"ok up to {CONDITION[0]:.0e}, not fit above {CONDITION[1]:.0e}"
    return Check("condition number", number, f"{number:.3g}", verdict, limits, meaning, action, sensors)


def check_rank(seen: ModelView) -> Check:
    """Effective rank (Shannon) of the correlations."""
    rank = seen.rank
    verdict = grade(rank, RANK * seen.size, -np.inf)
    meaning = f"The noise has about {rank:.3g} independent directions for {seen.size} sensors: "
    meaning += "the fewer, the more of it can be cancelled."
    action = ""
    if verdict != "ok":
        meaning += (
            " Nearly all noise is common; what separates sensors are small differences, which must be well known."
        )
        action = "Trust the condition number and the stability of the covariance first; see the expected number of "
        action += "measurements (`--anomalies`, `--shift`)."
    limits = f"ok from {percent(RANK)} of the sensors"
    return Check("effective rank", rank, f"{rank:.3g} of {seen.size}", verdict, limits, meaning, action)
