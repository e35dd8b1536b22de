"""A finding as a document for programs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eccaht.plants.explain.account import Account
from eccaht.plants.explain.arguments import Argument
from eccaht.streams.run.evidence import name_of

_SIZES = ("size", "size_low", "size_high"), ("size_raw", "size_raw_low", "size_raw_high")


def as_document(account: Account) -> dict[str, Any]:
    """Everything that the lines and the table say, and the rest of the numbers."""
    finding, rival, clock = account.finding, account.finding.rival, account.clock
    confidence = finding.confidence
    sensors = [*_not_searched(account), *(_sensor(account, k) for k in finding.ranked)]
    return {
        "named": [sensor for sensor in sensors if sensor["named"]],
        "cautions": account.cautions,
        "model_verdict": None if finding.diagnosis is None else finding.diagnosis.brief(),
        "confidence": None if confidence is None else confidence._asdict(),
        "settled": account.sure,
        "fits": finding.fits,
        "fit": finding.fit,
        "runner_up": _sensor(account, finding.runner_up) | {"margin": _number(finding.margin)},
        "best_rival": {
            "without": name_of(account.problem, rival.out) or None,
            "with": name_of(account.problem, rival.into) or None,
            "log_odds": rival.log_odds,
            "threshold": account.threshold if confidence is None else None,
        },
        "reason": finding.reason,
        "measurements": finding.n_measurements,
        "windows": finding.n_windows,
        "windows_skipped": finding.n_skipped,
        "windows_too_short": finding.n_short,
        "largest_inflation": max(entry.inflation for entry in finding.entries),
        "start": clock.exact(finding.first),
        "decided": clock.exact(account.decided),
        "same_set_since": {"measurement": finding.settled, "window": clock.exact(finding.settled_time)},
        "why": [_why(account, argument) for argument in account.arguments()],
        "sensors": sensors,
    }


def _not_searched(account: Account) -> list[dict[str, Any]]:
    """Sensors that stopped or fell silent before the search, in the shape of the others."""
    unknown = dict.fromkeys((*_SIZES[0], *_SIZES[1], "belief", "score", "shift", "shift_spread"))
    return [
        {"sensor": name, "named": True, "kind": kind, "since": account.clock.exact(since)} | unknown
        for name, kind, since in account.failed
    ]


def _sensor(account: Account, k: int) -> dict[str, Any]:
    finding, problem, name = account.finding, account.problem, name_of(account.problem, k)
    failed = {culprit.sensor: culprit for culprit in finding.culprits}.get(name)
    kind = "shifted" if k in finding.anomalies else None if failed is None else failed.kind
    numbers = {"belief": finding.beliefs[k], "score": finding.scores[k]}
    numbers |= {"shift": problem.shift[k], "shift_spread": problem.shift_spread[k]}
    for keys, values in zip(_SIZES, account.size_of(k), strict=True):
        numbers |= dict(zip(keys, values, strict=True))
    since = None if failed is None else account.clock.exact(failed.since)
    known: dict[str, Any] = {"sensor": name, "named": kind is not None, "kind": kind, "since": since}
    return known | {key: _number(value) for key, value in numbers.items()}


def _why(account: Account, argument: Argument) -> dict[str, Any]:
    c, problem = argument.weights, account.problem
    return {
        "sensor": name_of(problem, argument.change.out) or None,
        "instead": name_of(problem, argument.change.into) or None,
        "measurement": argument.entry.number,
        "window": account.clock.exact(argument.entry.time),
        "weights": {name_of(problem, i): float(c[i]) for i in np.flatnonzero(c).tolist()},
        "reading": argument.reading,
        "noise": argument.noise,
        "expected": argument.expected,
        "expected_if_swapped": argument.expected_otherwise,
        "evidence": argument.evidence,
    }


def _number(value: float) -> float | None:
    """The number, None for NaN, which JSON does not have."""
    return float(value) if math.isfinite(value) else None
