"""Are stopping rules as often wrong as they say? Searches counted over noises, rules and what is left open.

No part of the default run: 400 searches a line take an hour on two cores, `--searches 100` a quarter of it.
docs/measured/searches.md has the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table, three_digits
from eccaht import Problem, UnknownShift, families
from eccaht.base.arrays import Array
from eccaht.research.experiments.error_counts import ErrorCounts, Truth, count_errors, right_for_good, summarise
from eccaht.streams.covariance import Covariance

RUNS, QUICK_RUNS, JOBS, HORIZON = 400, 4, 2, 500
ALPHAS = (0.1, 0.05, 0.01, 1e-3, 1e-4)
NOISES = ("toeplitz", "rbf", "kronecker", "equicorrelation", "identity", "factor")


class Setting(NamedTuple):
    """One of the tables: what is asked, and what is true."""

    key: str
    title: str
    n_anomalies: tuple[int | tuple[int, int], int | tuple[int, int]]  # with 128 and with 40 streams
    truth: tuple[Truth, Truth]
    shift: float | UnknownShift = 3.0
    rule: str = "posterior"
    alphas: tuple[float, ...] = (0.05, 0.01)


_OPEN = ((0, 8), (0, 8))
SETTINGS = (
    Setting("posterior", "Number and shifts known, `posterior`", (5, 2), (Truth(), Truth()), alphas=ALPHAS),
    Setting("glr", "Number and shifts known, `glr`", (5, 2), (Truth(), Truth()), rule="glr"),
    Setting("open", "Number open, (0, 8), some anomalous", _OPEN, (Truth(5), Truth(2))),
    Setting("quiet", "Number open, (0, 8), nothing anomalous", _OPEN, (Truth(0), Truth(0))),
    Setting("sizes", "Sizes unknown", (5, 2), (Truth(None, (2.0, 5.0)),) * 2, UnknownShift(3.5)),
)


def jobs(quick: bool, searches: int | None = None) -> list[Job]:
    """One job a line."""
    runs = searches or (QUICK_RUNS if quick else RUNS)
    return [
        Job(f"{setting.key}, {noise}, K={K}, {runs} searches", partial(_count, setting, noise, K, runs))
        for setting in SETTINGS
        for K in (128, 40)
        for noise in NOISES
    ]


def tables(rows: list[Row]) -> list[Table]:
    """One table a setting, one line a problem and alpha."""
    columns = (
        Column("noise", "noise", right=False),
        Column("streams", "K"),
        Column("alpha", "alpha"),
        Column("stopped", "stopped"),
        Column("wrong", "wrong"),
        Column("at_most", "at most", _three_decimals),
        Column("holds", "holds"),
        Column("measurements", "mean stop", three_digits),
        Column("error", "±", three_digits),
        Column("right", "right for good", three_digits),
        Column("covered", "covered", _three_decimals),
    )
    return [
        Table(f"confidence-{s.key}", s.title, columns, [row for row in rows if row["setting"] == s.key])
        for s in SETTINGS
    ]


def _three_decimals(value: float) -> str:
    return f"{value:.3f}"


def _count(setting: Setting, noise: str, K: int, runs: int) -> list[Row]:
    place = 0 if K == 128 else 1
    problem = Problem(_noise(noise, K), shift=setting.shift, n_anomalies=setting.n_anomalies[place], budget=5.0)
    records = count_errors(
        problem,
        stopping=setting.rule,
        alphas=setting.alphas,
        runs=runs,
        horizon=HORIZON,
        truth=setting.truth[place],
        jobs=JOBS,
    )
    good = right_for_good(records)
    common: dict[str, Any] = {"setting": setting.key, "noise": noise, "streams": K}
    common["right"] = None if good is None else good.mean
    return [common | line for line in _lines(records)]


def _lines(records: ErrorCounts) -> Iterator[Row]:
    for level in summarise(records):
        times = [s.stops[records.alphas.index(level.alpha)] for s in records.searches]
        ended = [time.n_measurements for time in times if time is not None]
        yield {
            "alpha": level.alpha,
            "stopped": level.stopped,
            "wrong": level.errors,
            "at_most": level.at_most,
            "holds": {True: "yes", False: "NO", None: "-"}[level.compatible],
            "measurements": level.measurements.mean,
            "error": float(np.std(ended) / np.sqrt(len(ended))) if ended else None,
            "covered": None if level.coverage is None else level.coverage.share,
        }


def _noise(name: str, K: int) -> Covariance | Array:
    match name:
        case "identity":
            return families.identity(K)
        case "kronecker":
            return families.kronecker(0.8, (K // 8, 8))
        case "rbf":
            return families.rbf(K, rho=0.8)
        case "factor":  # four common causes, unit variances
            loads = np.random.default_rng(K).standard_normal((K, 4))
            return _correlations(loads @ loads.T + 0.5 * np.eye(K))
        case _:
            return getattr(families, name)(K, 0.8)


def _correlations(S: Array) -> Array:
    scale = np.sqrt(np.diag(S))
    return np.asarray(S / np.outer(scale, scale))
