"""What would help: options of `eccaht calibrate` that are tried on what the model keeps before anybody is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from eccaht.covariance import Dense
from eccaht.data.durations import show_duration
from eccaht.diagnose.memory import usual_lengths
from eccaht.diagnose.verdicts import EXCLUDED, VERDICTS, Check, Verdict, excluding
from eccaht.diagnose.view import ModelView
from eccaht.model.estimators import estimate
from eccaht.model.history import summarise

RIDGES = (0.01, 0.1)
_Checks = Sequence[Callable[[ModelView], Check]]


def exclusion(seen: ModelView, check: Callable[[ModelView], Check], sensors: Sequence[str], now: Verdict) -> str:
    """The option that leaves these sensors out, "" if the check would then say the same."""
    out = sensors[:EXCLUDED]
    left = [name for name in seen.names if name not in out]
    if len(left) < 2 or not _better(check(ModelView(seen.model.of(left), advise=False)).verdict, now):
        return ""
    return excluding(out)


def ridge(seen: ModelView, check: Callable[[ModelView], Check], now: Verdict) -> str:
    """The smallest ridge that betters the check, "" if none does."""
    for size in RIDGES:
        if size <= seen.model.ridge:
            continue
        covariance = Dense(seen.covariance + (size - seen.model.ridge) * np.eye(seen.size))
        other = replace(seen.model, covariance=covariance, ridge=size)
        if _better(check(ModelView(other, advise=False)).verdict, now):
            return f"`--ridge {size:g}`"
    return ""


def longer_windows(seen: ModelView, checks: _Checks, now: Verdict) -> str:
    """The length of a window that betters the independence of windows and worsens no check, or why there is none."""
    before = {check.name: check.verdict for check in (run(seen.quiet) for run in checks)}
    obstacle = ""
    best: tuple[Verdict, float] = (now, 0.0)
    for length, told in _tried_lengths(seen, checks):
        if not _better(told["independent windows"], best[0]):
            continue
        worse = [name for name, verdict in told.items() if _better(before[name], verdict)]
        if not worse:
            best = told["independent windows"], length
        elif not obstacle:
            obstacle = f"at {show_duration(length)} another check would be worse ({', '.join(worse)})"
        if best[0] == "ok":
            break
    if not best[1]:
        obstacle = obstacle or "windows stay dependent at every length that leaves enough of them"
        return f"No length of the window would help: {obstacle}"
    left = round(seen.n_windows * seen.model.seconds / best[1])
    return f"Calibrate with `--window {show_duration(best[1])}` ({left} windows would be left)"


def _tried_lengths(seen: ModelView, checks: _Checks) -> Iterator[tuple[float, dict[str, Verdict]]]:
    """Longer windows that people use, with the verdicts of all checks on the history cut into them."""
    model, kept = seen.model, seen.history.coarse
    step = float(seen.history.coarse_windows[0]) * model.seconds
    for length in usual_lengths():
        m = round(length / step)
        if length < 1.5 * model.seconds or m < 1 or abs(m * step - length) > 1e-6 * length:
            continue
        values = kept[: len(kept) // m * m].reshape(-1, m, seen.size).mean(axis=1)
        try:
            mean, covariance = estimate(values, model.estimator, model.ridge)
        except ValueError:  # too few windows, and longer ones leave fewer
            return
        summary = summarise(values, seen.history.stuck, seen.history.raw_quantiles)
        cut = replace(model, seconds=length, mean=mean, covariance=covariance, summary=summary, n_windows=len(values))
        longer = ModelView(cut, advise=False)
        yield length, {check.name: check.verdict for check in (run(longer) for run in checks)}


def _better(one: Verdict, other: Verdict) -> bool:
    return VERDICTS.index(one) < VERDICTS.index(other)
