"""The experiments of the paper's revision: searches that stop by themselves, with the authors' numbers beside ours.

The settings are those of the authors' repository (commits dd67bd3 and e202ac5 of VincentdeCristo/ECC-AHT): a fixed
true set, shift 1 and budget 2. A row is a policy with its options; `joint` stands beside the authors' procedures, with
its own boundary and with theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.statistics import clopper_pearson, estimate
from eccaht.research.experiments.tables import Table, from_rows
from eccaht.research.paper.experiment import Experiment, Setting
from eccaht.research.paper.published import PUBLISHED
from eccaht.research.paper.results import Results
from eccaht.streams import CATALOGUE, Problem, Simulator, make_policy, search
from eccaht.streams.limits import gamma_star

HORIZON = 5000  # readings: a search that needs more is counted as a timeout
_ALPHAS = (0.1, 0.03, 0.01, 0.003, 0.001)
LEVELS = (1e-3, 1e-6, 1e-12, 1e-24, 1e-48)
_VERIFIED = "ecc-aht-verified"
ROWS: dict[str, dict[str, Any]] = {  # by label, the policy and its options
    _VERIFIED: {},
    "plain-contrast": {"policy": _VERIFIED, "contrast": "plain"},
    "random-streams": {"policy": _VERIFIED, "explore": 1.0},
    "random-pair": {"policy": _VERIFIED, "contrast": "plain", "pair": "random"},
    "no-exploration": {"policy": _VERIFIED, "explore": 0.0},
    "two-stage": {},
    "oracle-design": {},
    "joint": {"stopping": "glr"},
    "joint-union": {"policy": "joint", "stopping": "union"},
}
ABLATION = (*list(ROWS)[:5], "joint", "joint-union")
PROCEDURES = ("two-stage", _VERIFIED, "oracle-design", "joint-union")


def _setting(
    family: str,
    rho: float,
    *,
    streams: int = 20,
    anomalies: Sequence[int] | int = (0, 1),
    alpha: float = 0.05,
    shift: float = 1.0,
    budget: float = 2.0,
    label: str = "",
    x: float = math.nan,
) -> Setting:
    shape = {"K": streams} if family == "identity" else {"K": streams, "rho": rho}
    name = label or (family if family == "identity" else f"{family} {rho:g}")
    if isinstance(anomalies, int):  # so many, drawn anew for each search
        return Setting(name, family, shape, anomalies, shift, budget, x, options={"alpha": alpha})
    options = {"alpha": alpha, "anomalies": list(anomalies)}
    return Setting(name, family, shape, len(anomalies), shift, budget, x, options=options)


def _experiment(id: str, title: str, rows: Sequence[str], settings: Iterable[Setting], searches: int) -> Experiment:
    options = {row: ROWS[row] for row in rows}
    return Experiment(
        id, title, "confidence", tuple(settings), tuple(rows), HORIZON, policy_options=options, searches=searches
    )


def _small(alphas: Iterable[float]) -> list[Setting]:
    """Four streams, the two outer ones anomalous."""
    given = {"streams": 4, "anomalies": (0, 3)}
    return [
        _setting(family, 0.5, **given, alpha=alpha, x=-math.log10(alpha))  # type: ignore[arg-type]
        for family in ("identity", "toeplitz")
        for alpha in alphas
    ]


def _sweeps() -> list[Setting]:
    toeplitz = ("toeplitz", 0.5)
    return [
        *(_setting(*toeplitz, budget=b, label="budget B", x=b) for b in (1.0, 2.0, 4.0)),
        *(_setting(*toeplitz, shift=d, label="shift", x=d) for d in (0.5, 1.0, 2.0)),
        *(
            _setting(*toeplitz, streams=12, anomalies=range(n), label="anomalies of 12 streams", x=n)
            for n in (1, 2, 3, 4)
        ),
        *(
            _setting(family, rho, label=f"rho, {family}", x=rho)
            for family in ("equicorrelation", "toeplitz")
            for rho in (0.2, 0.4, 0.6, 0.8)
        ),
        *(_setting(*toeplitz, alpha=a, label="log10(1/alpha)", x=-math.log10(a)) for a in _ALPHAS),
        *(_setting(*toeplitz, anomalies=(0, k), label="second anomaly (the first is 0)", x=k) for k in (1, 10)),
    ]


_NOISE = (("identity", 0.0), ("equicorrelation", 0.9), ("toeplitz", 0.5), ("toeplitz", 0.9))
REVISED = (
    _experiment(
        "revised-ablation", "Readings until each procedure stops", ABLATION, (_setting(*each) for each in _NOISE), 15
    ),
    _experiment(
        "revised-errors",
        "Wrong sets at alpha 0.05, the true set drawn anew for each search",
        PROCEDURES,
        (_setting(*each, anomalies=2) for each in _NOISE[:3]),
        20,
    ),
    _experiment("revised-coverage", "Wrong sets at alpha 0.05 and 0.01", PROCEDURES, _small((0.05, 0.01)), 100),
    _experiment("revised-rate", "Readings for each nat of log(1/alpha), times Gamma*", PROCEDURES, _small(LEVELS), 10),
    _experiment("revised-sweeps", "Readings as one thing varies", (_VERIFIED, "joint"), _sweeps(), 5),
)


def decide(
    problem: Problem, row: str, horizon: int, seed: tuple[int, int], options: dict[str, Any]
) -> NDArray[np.int32]:
    """Search until the rule stops: the anomalous streams in the final set, the readings, and whether it stopped."""
    given = dict(options)
    name = given.pop("policy", row)
    world = Simulator(problem, seed=seed, anomalies=given.pop("anomalies", None), names=[row])
    if CATALOGUE[name].oracle:
        given["anomalies"] = world.anomalies.tolist()
    policy = make_policy(name, problem, seed=seed, **given)
    found = search(policy, world.measure, max_measurements=horizon)
    hits = int(np.isin(found.anomalies, world.anomalies).sum())
    return np.array([hits, found.n_measurements, policy.should_stop()], dtype=np.int32)


def information_limit(setting: Setting) -> float | None:
    """Gamma* of the true set for a mix of measurements, nats a reading; None where the set varies."""
    truth = setting.options.get("anomalies")
    return None if truth is None else gamma_star(setting.problem(), truth, mix=True).found


def confidence_table(results: Results) -> Table:
    """One row for each setting and procedure: errors, readings, and what the authors have."""
    rows = []
    for k, row in results.experiment.cells:
        setting = results.experiment.settings[k]
        hits, readings, stopped = results.cells[k, row].T
        wrong, runs = int(((hits < setting.n_anomalies) & (stopped > 0)).sum()), len(hits)
        low, high = clopper_pearson(wrong, runs)
        mean, interval = estimate(readings.astype(float), rng=results.bootstrap())
        alpha, rate = setting.options["alpha"], information_limit(setting)
        theirs = PUBLISHED.get((results.experiment.id, k, row))
        rows.append(
            {
                "setting": k,
                "label": setting.label,
                "x": None if math.isnan(setting.x) else setting.x,
                "alpha": alpha,
                "procedure": row,
                "runs": runs,
                "wrong": wrong,
                "wrong_low": low,
                "wrong_high": high,
                "timeouts": int(runs - stopped.sum()),
                "readings": mean,
                "readings_low": None if interval is None else interval[0],
                "readings_high": None if interval is None else interval[1],
                "gamma_star": rate,
                "ratio": None if rate is None else mean * rate / math.log(1.0 / alpha),
                "authors": None if theirs is None else theirs[0],
                "authors_se": None if theirs is None else theirs[1],
            }
        )
    return from_rows(rows)
