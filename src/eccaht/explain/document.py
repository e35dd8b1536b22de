"""A finding as a document for programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from eccaht.explain.reasons import Argument
from eccaht.run.evidence import EMPTY, name_of

if TYPE_CHECKING:
    from eccaht.explain.telling import Account


def document(account: Account) -> dict[str, Any]:
    """Everything that the lines and the table say, and the rest of the numbers."""
    finding, rival = account.finding, account.finding.rival
    confidence = finding.confidence
    sensors = [*_apart(account), *(_sensor(account, k) for k in account.ranked())]
    return {
        "named": [sensor for sensor in sensors if sensor["named"]],
        "cautions": account.cautions,
        "model_verdict": None if finding.diagnosis is None else finding.diagnosis.brief(),
        "confidence": None if confidence is None else confidence._asdict(),
        "settled": account.settled,
        "fits": finding.fits,
        "fit": finding.fit,
        "runner_up": _sensor(account, finding.runner_up) | {"margin": _plain(finding.margin)},
        "best_rival": {
            "without": _name(account, rival.out),
            "with": _name(account, rival.into),
            "log_odds": rival.log_odds,
            "threshold": account.threshold if confidence is None else None,
        },
        "reason": finding.reason,
        "measurements": finding.n_measurements,
        "windows": finding.n_windows,
        "windows_skipped": finding.n_skipped,
        "windows_too_short": finding.n_short,
        "largest_inflation": max(entry.inflation for entry in finding.entries),
        "start": account.clock.exact(finding.first),
        "decided": account.clock.exact(account.decided),
        "same_set_since": {"measurement": finding.settled, "window": account.clock.exact(finding.settled_time)},
        "why": [_why(account, argument) for argument in account.arguments()],
        "sensors": sensors,
    }


def _name(account: Account, k: int) -> str | None:
    return None if k == EMPTY else name_of(account.problem, k)


def _apart(account: Account) -> list[dict[str, Any]]:
    """Sensors that were left out of the search because they need none, in the shape of the others."""
    empty = dict.fromkeys(f"{unit}{end}" for unit in ("size", "size_raw") for end in ("", "_low", "_high"))
    empty |= dict.fromkeys(("belief", "score", "shift", "shift_spread"))
    return [
        {"sensor": apart.sensor, "named": True, "kind": apart.kind, "since": account.clock.exact(apart.since)} | empty
        for apart in account.apart
    ]


def _sensor(account: Account, k: int) -> dict[str, Any]:
    finding, problem = account.finding, account.problem
    culprit = {culprit.sensor: culprit for culprit in finding.culprits}.get(name_of(problem, k))
    kind = "shifted" if k in finding.anomalies else None if culprit is None else culprit.kind
    told: dict[str, Any] = {"sensor": name_of(problem, k), "named": kind is not None, "kind": kind}
    told |= {"since": None if culprit is None else account.clock.exact(culprit.since)}
    told |= {"belief": finding.beliefs[k], "score": finding.scores[k]}
    told |= {"shift": problem.shift[k], "shift_spread": problem.shift_spread[k]}
    for unit, values in zip(("size", "size_raw"), account.size_of(k), strict=True):
        told |= dict(zip((unit, f"{unit}_low", f"{unit}_high"), values, strict=True))
    return {key: _plain(value) for key, value in told.items()}


def _why(account: Account, argument: Argument) -> dict[str, Any]:
    c = argument.weights
    return {
        "sensor": _name(account, argument.change.out),
        "instead": _name(account, argument.change.into),
        "measurement": argument.entry.number,
        "window": account.clock.exact(argument.entry.time),
        "weights": {name_of(account.problem, i): float(c[i]) for i in np.flatnonzero(c).tolist()},
        "reading": argument.reading,
        "noise": argument.noise,
        "expected": argument.expected,
        "expected_if_swapped": argument.expected_otherwise,
        "evidence": argument.evidence,
    }


def _plain(value: Any) -> Any:
    """For JSON: no NaN, no numpy."""
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
