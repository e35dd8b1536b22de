"""Remedies: options of `eccaht calibrate`, tried on the summaries in the model before they are suggested."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from eccaht.base.durations import show_duration
from eccaht.plants.diagnose.verdicts import VERDICTS, Check, Verdict
from eccaht.plants.diagnose.view import ModelView
from eccaht.plants.model.estimators import estimate
from eccaht.plants.model.history import summarise
from eccaht.plants.model.model import Model
from eccaht.streams.covariance import Dense

RIDGES = (0.01, 0.1)
EXCLUDED = 12  # sensors that a suggested option leaves out at most
# lengths that people give windows, in seconds: 5 s, 1 min, 15 min, 2 h, up to a week
_STEPS, _HOURS, _DAYS = (1, 2, 5, 10, 15, 20, 30, 60), (1, 2, 3, 4, 6, 8, 12, 24), range(2, 8)
_LENGTHS = sorted({*_STEPS, *(60 * x for x in _STEPS), *(3600 * x for x in _HOURS), *(86400 * x for x in _DAYS)})
Test = Callable[[ModelView], Check]


def exclusion(view: ModelView, check: Test, sensors: Sequence[str], now: Verdict) -> str:
    """The option that leaves these sensors out, at most a dozen; "" if that does not improve the verdict."""
    out = sensors[:EXCLUDED]
    left = [name for name in view.names if name not in out]
    if not view.advise or len(left) < 2 or not _better(_verdict(check, view.model.of(left)), now):
        return ""
    return f"`--exclude {shlex.quote(','.join(out))}`"


def ridge(view: ModelView, check: Test, now: Verdict) -> str:
    """The smallest ridge that improves the verdict of the check, "" if none does."""
    for size in RIDGES if view.advise else ():
        if size <= view.model.ridge:
            continue
        covariance = Dense(view.covariance + (size - view.model.ridge) * np.eye(view.size))
        if _better(_verdict(check, replace(view.model, covariance=covariance, ridge=size)), now):
            return f"`--ridge {size:g}`"
    return ""


def longer_windows(view: ModelView, checks: Sequence[Test], now: Verdict) -> str:
    """The window length that improves the independence of windows and worsens no check, or why there is none."""
    before = _verdicts(checks, view.model)
    obstacle = ""
    best: tuple[Verdict, float] = (now, 0.0)
    for length, after in _tried_lengths(view, checks):
        if not _better(after["independent windows"], best[0]):
            continue
        worse = [name for name, verdict in after.items() if _better(before[name], verdict)]
        if not worse:
            best = after["independent windows"], length
        elif not obstacle:
            obstacle = f"at {show_duration(length)} another check would be worse ({', '.join(worse)})"
        if best[0] == "ok":
            break
    if not best[1]:
        obstacle = obstacle or "windows stay dependent at every length that leaves enough of them"
        return f"No length of the window would help: {obstacle}"
    left = round(view.n_windows * view.model.seconds / best[1])
    return f"Calibrate with `--window {show_duration(best[1])}` ({left} windows would be left)"


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


def _verdict(check: Test, model: Model) -> Verdict:
    return check(ModelView(model, advise=False)).verdict


def _verdicts(checks: Sequence[Test], model: Model) -> dict[str, Verdict]:
    view = ModelView(model, advise=False)
    return {check.name: check.verdict for check in (run(view) for run in checks)}


def _better(one: Verdict, other: Verdict) -> bool:
    return VERDICTS.index(one) < VERDICTS.index(other)


def advice(tried: Mapping[str, str], *others: str, untried: str = "") -> str:
    """What to do: options that were tried and help, advice without a trial, and what cannot be tried with this model.

    >>> advice({"leave it out": "`--exclude a`", "smooth": ""}, untried="give another history")
    'Leave it out (`--exclude a`). Not tried, because it needs more than the model: give another history.'
    """
    ways = [f"{what} ({option})" for what, option in tried.items() if option]
    text = ", or ".join([*ways, *others])
    text = f"{text[:1].upper()}{text[1:]}." if text else ""
    if untried:
        text += f" Not tried, because it needs more than the model: {untried}."
    return text.strip()
