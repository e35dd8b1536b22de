"""Watching under heavy tails and with an estimated covariance: false alarms counted, with and without saying so.

No part of the default run: it takes about twenty minutes on one core. All windows are quiet, so every alarm is false;
after one the detector starts afresh. An estimate is drawn, calibrated and watched several times, and the mean time is
that of all windows over all alarms. Delays are those of steps of size 1 in three streams.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table, thousands, three_digits
from benchmarks.watch_rules import Ours
from eccaht import families
from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for


class Noise(NamedTuple):
    """How the noise differs from a Gaussian of exactly the given covariance.

    apart: each stream has heavy tails of its own, instead of the whole window.
    """

    degrees_of_freedom: float | None = None
    estimated_from: int | None = None
    apart: bool = False

    def rows(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Noise of covariance I, (n, K)."""
        rows: Array = rng.standard_normal(shape)
        if (nu := self.degrees_of_freedom) is not None:
            rows *= np.sqrt((nu - 2.0) / rng.chisquare(nu, shape if self.apart else (shape[0], 1)))
        return rows


GAUSSIAN = Noise()
EVERY = 500  # windows to a false alarm that are asked for
WINDOWS = 2500  # of a run
RUNS = 200  # of all estimates together
ESTIMATES = {30: 20, 100: 8}  # by streams
SHIFTED, MOST = 3, 2000  # streams with a step; windows until it is given up
STREAMS = (30, 100)
FAMILIES = ("independent", "toeplitz 0.8")
NOISES = {
    "Gaussian": GAUSSIAN,
    "t5, whole windows": Noise(5.0),
    "t5, each stream": Noise(5.0, apart=True),
    "t10, whole windows": Noise(10.0),
    "t10, each stream": Noise(10.0, apart=True),
    "estimated from 500": Noise(estimated_from=500),
    "estimated from 2,000": Noise(estimated_from=2000),
    "t5, whole windows, estimated from 2,000": Noise(5.0, 2000),
}


class Case(NamedTuple):
    """Streams, their family, and the noise that they really have."""

    streams: int
    family: str
    noise: str

    def covariance(self) -> Array:
        """The true one, (K, K)."""
        return np.eye(self.streams) if self.family == FAMILIES[0] else families.toeplitz(self.streams, 0.8).dense()

    def rng(self, what: str) -> np.random.Generator:
        """The generator of one purpose."""
        return rng_for(0, f"{self.streams}", self.family, self.noise, what)


def jobs(quick: bool) -> list[Job]:
    """One job a case."""
    cases = [Case(K, family, noise) for K in STREAMS for family in FAMILIES for noise in NOISES]
    return [Job(f"watch-noise, {case}", partial(_count, case, quick)) for case in (cases[:3] if quick else cases)]


def _count(case: Case, quick: bool) -> list[Row]:
    """False alarms of a watch that assumes Gaussian noise, and of one that is given the noise; with delays."""
    noise = NOISES[case.noise]
    estimates = ESTIMATES[case.streams] if noise.estimated_from else 1
    runs = max(RUNS // estimates // (10 if quick else 1), 4)
    given = {"degrees_of_freedom": noise.degrees_of_freedom, "estimated_from": noise.estimated_from}
    rows: dict[str, dict[str, float | int | None]] = {"Gaussian": {}, "given": given}
    alarms: dict[str, list[float]] = {name: [] for name in rows}
    delays: dict[str, list[float]] = {name: [] for name in rows}
    draws = case.rng("estimates")
    for estimate in range(estimates):
        mean, covariance = _known(case, draws)
        for name, said in rows.items():
            watch = Ours(covariance, mean, **said)
            quiet, moved = (case.rng(f"{what} {estimate}") for what in ("quiet", "moved"))
            alarms[name] += _alarms(case, watch, runs, quiet).tolist()
            delays[name] += _delays(case, watch, runs, moved).tolist()
    return [case._asdict() | {"assumed": name} | _row(alarms[name], delays[name], estimates) for name in rows]


def _known(case: Case, rng: np.random.Generator) -> tuple[Array, Array]:
    """Mean and covariance as the watch has them."""
    covariance, windows = case.covariance(), NOISES[case.noise].estimated_from
    mean = np.zeros(case.streams)
    if windows is not None:
        sample = _windows(case, windows, rng)
        mean, covariance = sample.mean(axis=0), np.cov(sample.T)
    return mean, covariance


def _windows(case: Case, count: int, rng: np.random.Generator) -> Array:
    """Quiet windows, (count, K)."""
    rows = NOISES[case.noise].rows(rng, (count, case.streams))
    return np.asarray(rows @ _root(case))


@lru_cache
def _root(case: Case) -> Array:
    """The symmetric root of the covariance."""
    values, vectors = np.linalg.eigh(case.covariance())
    return np.asarray((vectors * np.sqrt(values)) @ vectors.T)


def _alarms(case: Case, watch: Ours, runs: int, rng: np.random.Generator) -> Array:
    """False alarms of each run."""
    found = np.zeros(runs)
    watch.start(runs)
    for _ in range(WINDOWS):
        over = watch.update(_windows(case, runs, rng))[:, 0] >= np.log(EVERY)
        found += over
        watch.restart(over)
    return found


def _delays(case: Case, watch: Ours, runs: int, rng: np.random.Generator) -> Array:
    """Windows from a step to the alarm, of each run."""
    shifts = np.zeros((runs, case.streams))
    for row in shifts:
        row[rng.choice(case.streams, SHIFTED, replace=False)] = 1.0
    found = np.full(runs, float(MOST))
    watch.start(runs)
    for t in range(1, MOST):
        over = watch.update(_windows(case, runs, rng) + shifts)[:, 0] >= np.log(EVERY)
        found[over] = np.minimum(found[over], t)
        if (found < MOST).all():
            break
    return found


def _row(alarms: list[float], delays: list[float], estimates: int) -> Row:
    """Mean time with a 95 % interval from resampled runs, all of an estimate together."""
    counts = np.array(alarms).reshape(estimates if estimates > 1 else len(alarms), -1)
    watched = counts.shape[1] * WINDOWS
    sums, rng = counts.sum(axis=1), rng_for(0, "bootstrap")
    again = rng.choice(sums, (4000, len(sums))).mean(axis=1)
    high, low = np.quantile(again, [0.025, 0.975])
    row: Row = {"alarms": int(sums.sum()), "windows": int(watched * len(sums))}
    row |= {"mean_time": watched / max(sums.mean(), 1e-9), "low": watched / low, "high": watched / max(high, 1e-9)}
    return row | {"delay": float(np.mean(delays)), "error": float(np.std(delays, ddof=1) / np.sqrt(len(delays)))}


def tables(rows: list[Row]) -> list[Table]:
    """All cases."""
    columns = (
        Column("streams", "K"),
        Column("family", "covariance", right=False),
        Column("noise", "noise", right=False),
        Column("assumed", "threshold for", right=False),
        Column("alarms", "false alarms"),
        Column("windows", "in windows", thousands),
        Column("mean_time", "mean time to one", thousands),
        Column("low", "from", thousands),
        Column("high", "to", thousands),
        Column("delay", "delay", three_digits),
        Column("error", "standard error", three_digits),
    )
    notes = (
        f"One false alarm in {EVERY:,} windows is asked for; 95 % intervals from runs, or estimates, resampled.",
        "Estimates are the mean and the sample covariance; steps of size 1 in three streams.",
    )
    return [Table("watch-noise", "False alarms under other noise than Gaussian", columns, rows, notes)]
