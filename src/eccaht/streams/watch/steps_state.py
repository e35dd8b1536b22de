"""The state of a watch of a problem as plain numbers.

The problem is kept as its covariance, mean and names, all that watching needs, with the inverse that was used, so that
the watch goes on bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.archive import check_keys
from eccaht.base.arrays import Array, as_count, as_number
from eccaht.base.stored import check_bounded
from eccaht.streams.problem import Problem
from eccaht.streams.shifts import ShiftPrior
from eccaht.streams.watch.alarm import Alarm
from eccaht.streams.watch.alarm_state import built_alarm, number_of, stored_alarm
from eccaht.streams.watch.detector import LONGEST
from eccaht.streams.watch.naming import SIZES, Named, Onset
from eccaht.streams.watch.simulation import SimulatedNoise
from eccaht.streams.watch.steps import StepWatch
from eccaht.streams.watch.thresholds import Calibrated, Calibration, EDetector

_KEYS = {"names", "n_anomalies", "threshold", "false_alarm_every", "time", "fresh", "alarm", "past", "common"}
_ARRAYS = {"covariance", "precision", "mean", "shift", "shift_spread", "recent", "logarithms"}
_NOISE: dict[str, Any] = {"degrees_of_freedom": None, "estimated_from": None}  # absent from earlier files
_INVERSE = 1e-6  # by how much covariance times precision may differ from the identity


def steps_state(watch: StepWatch) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A watch as values of JSON and arrays."""
    problem = watch.problem
    arrays: dict[str, NDArray[Any]] = {
        "covariance": watch._covariance,
        "precision": watch._precision,
        "mean": problem.mean,
        "shift": problem.shift,
        "shift_spread": problem.shift_spread,
        "recent": watch._recent,
        "logarithms": np.array([watch._log_time, watch._over]),
    }
    if watch._assumption is not None:
        arrays["assumption"] = watch._assumption.state()
    arrays |= {f"rule.{name}": array for name, array in watch._rule.state().items()}
    header: dict[str, Any] = {
        "names": problem.names,
        "n_anomalies": problem.n_anomalies,
        "threshold": watch.threshold,
        "false_alarm_every": watch.false_alarm_every,
        "time": watch.time,
        "fresh": watch._fresh,
        "common": None if watch._named is None else watch._named.common,
        **{name: getattr(problem, name) for name in _NOISE},
    }
    for which, alarm in (("alarm", watch.alarm), ("past", watch.past)):
        header[which], parts = stored_alarm(which, alarm)
        arrays |= parts
    return header, arrays


def built_steps(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> StepWatch:
    header = {**_NOISE, **header}
    check_keys(header, _KEYS | set(_NOISE), "header")
    plain = {name: array for name, array in arrays.items() if name.partition(".")[0] not in ("rule", "alarm", "past")}
    check_keys(plain, _ARRAYS | ({"assumption"} & set(plain)), "list of arrays")
    problem = Problem(
        plain["covariance"],
        shift=ShiftPrior(plain["shift"], plain["shift_spread"]),
        n_anomalies=header["n_anomalies"],
        budget=1.0,
        mean=plain["mean"],
        names=header["names"],
        **{name: header[name] for name in _NOISE},
    )
    every = as_number(header["false_alarm_every"], "false_alarm_every")
    if every < 1.0:
        raise ValueError("its false-alarm rate is damaged")
    precision = _checked_inverse(plain["precision"], plain["covariance"])
    watch = StepWatch.__new__(StepWatch)
    watch._begin(problem, every, plain["covariance"], precision, _rule(header["threshold"], problem, precision, arrays))
    watch.time = as_count(header["time"], "time", least=0)
    watch._fresh = as_count(header["fresh"], "fresh", least=0)
    recent, logarithms = plain["recent"], plain["logarithms"]
    if watch._fresh > watch.time or recent.shape != (LONGEST, problem.size) or logarithms.shape != (2,):
        raise ValueError("its windows are damaged")
    check_bounded(recent[~np.isnan(recent)], "windows")
    if not (logarithms < np.inf).all():
        raise ValueError("its evidence is damaged")
    if "assumption" in plain:
        if watch._assumption is None:
            raise ValueError("its check of the noise is damaged")
        watch._assumption.restore(plain["assumption"])
    watch._recent, (watch._log_time, watch._over) = recent, logarithms.tolist()
    watch.alarm, watch.past = (_alarm(which, header[which], arrays, watch) for which in ("alarm", "past"))
    if (watch.alarm is None) != (header["common"] is None) or (watch.past is not None and watch.past.over is None):
        raise ValueError("its alarms are damaged")
    if watch.alarm is not None:
        if watch.alarm.over is not None or header["common"] not in SIZES:
            raise ValueError("its alarm is damaged")
        a = watch.alarm
        onset = Onset(*map(number_of, (a.onset, *a.onset_interval)))
        watch._named = Named(a.decision, a.sizes, a.beliefs, onset, header["common"])
    return watch


def _rule(
    threshold: Any, problem: Problem, precision: Array, arrays: dict[str, NDArray[Any]]
) -> Calibrated | EDetector:
    state = {name.removeprefix("rule."): array for name, array in arrays.items() if name.startswith("rule.")}
    rule: Calibrated | EDetector
    if threshold == "proven":
        problem.check_gaussian("proven thresholds")
        rule = EDetector(precision)
    elif threshold == "calibrated":
        rule = Calibrated(precision, Calibration.from_numbers(state["calibration"], SimulatedNoise.of(problem)))
    else:
        raise ValueError("its threshold is neither 'calibrated' nor 'proven'")
    rule.restore(state)
    return rule


def _checked_inverse(precision: Array, covariance: Array) -> Array:
    if precision.shape != covariance.shape or not np.isfinite(precision).all() or (precision != precision.T).any():
        raise ValueError("its precision is damaged")
    root = np.sqrt(covariance.diagonal())
    product = (covariance / np.outer(root, root)) @ (precision * np.outer(root, root))
    if np.abs(product - np.eye(len(root))).max() > _INVERSE * max(
        1.0, float(np.abs(precision).max() * root.max() ** 2)
    ):
        raise ValueError("its precision is not the inverse of its covariance")
    return precision


def _alarm(which: str, header: Any, arrays: dict[str, NDArray[Any]], watch: StepWatch) -> Alarm | None:
    names = watch.problem.names or tuple(map(str, range(watch.problem.size)))
    alarm = built_alarm(which, header, arrays, names, dated=False)
    if alarm is None:
        return None
    first, last = map(number_of, alarm.onset_interval)
    time = number_of(alarm.time)
    if time >= watch.time or last > time + LONGEST or (np.diff(alarm.decision) <= 0).any() or first < 0:
        raise ValueError(f"its {which} is damaged")
    check_bounded(alarm.sizes, "sizes")
    return alarm
