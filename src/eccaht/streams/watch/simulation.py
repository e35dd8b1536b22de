"""Windows in which nothing is wrong, simulated as a problem describes its noise: thresholds are estimated on them.

By default the noise of a window is N(0, S), S the covariance of the problem. With degrees of freedom nu it is
S^(1/2) (s * z), z ~ N(0, I) and s^2 ~ (nu - 2) / chi2_nu, which has the covariance S too. Either s is one number for
the whole window, which makes it multivariate t, or each stream has its own. Plants have both, and neither is the worse
one throughout: with few streams heavy windows are, with many heavy streams. So both are simulated, and a threshold
holds for both.

With a covariance and mean estimated from m windows, a run draws an estimate too, with S in place of the true
covariance: m windows of covariance I have the mean e and the sample covariance W, so that S^(1/2) W S^(1/2) is the
estimate where S is true. The scores of that watch are S^(-1/2) W^-1 (z - e), each over the root of its diagonal entry
of S^(-1/2) W^-1 S^(-1/2). Their variance is about (1 - K/m)^-2, not 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array
from eccaht.streams.problem import Problem
from eccaht.streams.watch.scores import Floating

_CHUNK = 1 << 20  # numbers of estimation windows drawn at once
_DRAWN = 1e8  # numbers of estimation windows, of all draws: runs share draws where it would be more
_FEWEST = 16  # draws of an estimate
_MOST = 1_000_000  # windows of an estimate that are drawn: the error of more is smaller


class SimulatedNoise(NamedTuple):
    """How the noise differs from a Gaussian of exactly the given covariance; see `Problem`.

    apart: each stream has heavy tails of its own, instead of the whole window.
    """

    degrees_of_freedom: float | None = None
    estimated_from: int | None = None
    apart: bool = False

    @staticmethod
    def of(problem: Problem) -> SimulatedNoise:
        return SimulatedNoise(problem.degrees_of_freedom, problem.estimated_from)

    def simulated(self) -> tuple[SimulatedNoise, ...]:
        """What a threshold must hold for."""
        return (self,) if self.degrees_of_freedom is None else (self, self._replace(apart=True))

    def __str__(self) -> str:
        """What a false-alarm rate assumes."""
        nu, m, _ = self
        shape = "Gaussian noise" if nu is None else f"t noise of {nu:g} degrees of freedom"
        known = "exactly this covariance" if m is None else f"a covariance and mean estimated from {m} windows"
        return f"independent windows, {shape}, {known}"


GAUSSIAN = SimulatedNoise()


def quiet_scores(correlation: Array, noise: SimulatedNoise, runs: int, rng: np.random.Generator) -> Iterator[Floating]:
    """Scores of one window after the other, without end, (runs, K) in single precision.

    correlation: Q in units of the roots of its diagonal, which is the covariance of the scores, (K, K).
    """
    values, vectors = np.linalg.eigh(correlation)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    root = (root if noise == GAUSSIAN else vectors @ root).astype(np.float32)  # streams keep their own tails
    size = len(root)
    if noise.estimated_from is None:
        while True:
            yield _rows(rng, (runs, size), noise) @ root
    each = _runs_a_draw(noise.estimated_from, size, runs)
    draws = [_seen(rng, root, noise) for _ in range(-(-runs // each))]
    offsets, mixing = (np.stack(part) for part in zip(*draws, strict=True))
    while True:
        rows = _rows(rng, (len(draws), each, size), noise)
        yield ((rows - offsets) @ mixing).reshape(-1, size)[:runs]


def _rows(rng: np.random.Generator, shape: tuple[int, ...], noise: SimulatedNoise) -> Floating:
    """Noise of covariance I, (..., K)."""
    rows: Floating = rng.standard_normal(shape, dtype=np.float32)
    if (nu := noise.degrees_of_freedom) is not None:
        halves = rng.standard_gamma(0.5 * nu, shape if noise.apart else (*shape[:-1], 1), dtype=np.float32)
        rows *= np.sqrt(np.float32(0.5 * nu - 1.0) / halves)  # half of chi2_nu is a gamma variable of shape nu / 2
    return rows


def _runs_a_draw(windows: int, size: int, runs: int) -> int:
    """How many runs share one draw of an estimate, so that long histories do not take long to simulate."""
    draws = max(_FEWEST, int(_DRAWN / (min(windows, _MOST) * size)))
    return -(-runs // min(draws, runs))


def _seen(rng: np.random.Generator, root: Floating, noise: SimulatedNoise) -> tuple[Floating, Floating]:
    """One draw of an estimate: the error of the mean, (1, K), and what makes scores of the rest, (K, K)."""
    assert noise.estimated_from is not None
    size, left = len(root), min(noise.estimated_from, _MOST)
    count, total, squares = left, np.zeros(size), np.zeros((size, size))
    while left:
        rows = _rows(rng, (min(left, max(_CHUNK // size, 1)), size), noise)
        total += rows.sum(axis=0, dtype=float)
        squares += rows.T @ rows
        left -= len(rows)
    mean = total / count
    mixing = np.linalg.solve((squares - count * np.outer(mean, mean)) / (count - 1), root)
    scale = np.sqrt(np.einsum("ik,ik->k", root, mixing))
    return mean[None].astype(np.float32), (mixing / scale).astype(np.float32)
