"""How rare values of the detector's components are while nothing is wrong, and from which on they raise an alarm.

The default is counted in a simulation of the streams as the problem has them. Of each component, and then of their
combination, blocks of windows give the tail of the largest value: beyond a level that a quarter of the blocks pass, the
rate of passing b falls as exp(-slope (b - level)), and longer times are extrapolated by it. The slope of all three
components grows, if at all, with b, so that extrapolation errs on the side of fewer false alarms; two standard errors
of the fit are added on that side too. Where the noise has heavy tails or the covariance was estimated, the rate falls
more slowly the larger b is; then components are taken by their logarithms, and the rate falls as a power of b.

The noise of a window is N(0, S), S the covariance of the problem. With degrees of freedom nu it is S^(1/2) (s * z) with
z ~ N(0, I) and s^2 ~ (nu - 2) / chi2_nu, which has the covariance S too. Either s is one number for the whole window,
which makes it multivariate t, or each stream has its own. Plants have both, and neither is the worse one throughout:
with few streams heavy windows are, with many heavy streams. So both are simulated, and a threshold holds for both.

With a covariance and mean estimated from m windows, a run draws an estimate too, with S in place of the true
covariance: m windows of covariance I have the mean e and the sample covariance W, so that S^(1/2) W S^(1/2) is the
estimate where S is true. The scores of that watch are S^(-1/2) W^-1 (z - e), each over the root of its diagonal entry
of S^(-1/2) W^-1 S^(-1/2). Their variance is about (1 - K/m)^-2, not 1.

`detector.EDetector` needs no simulation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.codec import Part
from eccaht.base.randomness import Seed, check_seed, rng_for
from eccaht.streams.problem import Problem
from eccaht.streams.watch.detector import COMPONENTS, LONGEST, Floating, StepDetector

SHARES = (0.3, 0.5, 0.2)  # of the false alarms, by component
_NUMBERS, _FEWEST, _MOST = 2e7, 40_000, 400_000  # windows that are simulated: so many numbers, within limits
_BLOCK = 250  # windows, of which the largest value is taken
_BLOCKS = 4  # of one run
_WARM = LONGEST  # windows before the first block: onsets as early as ever are candidates in it
_PASSING = 0.25  # share of the blocks that pass the level of a tail
_ERRORS = 2.0  # standard errors of the fitted tail by which a threshold is kept on the safe side
_CACHED = 64  # calibrations
_LEAST = 1e-9  # nats: what logarithms of components begin at
_CHUNK = 1 << 20  # numbers of estimation windows drawn at once
_DRAWN = 1e8  # numbers of estimation windows, of all draws: runs share draws where it would be more
_FEWEST_DRAWS = 16  # draws of an estimate
_MOST_ESTIMATED = 1_000_000  # windows of an estimate that are drawn: the error of more is smaller
_CALIBRATIONS: dict[tuple[str, tuple[int, ...], SimulatedNoise, int, int], Calibration] = {}


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

    def rows(
        self,
        rng: np.random.Generator,
        shape: tuple[int, ...],
        dtype: type[np.float64] | type[np.float32] = np.float32,
    ) -> Floating:
        """Noise of covariance I, (..., K)."""
        rows: Floating = rng.standard_normal(shape, dtype=dtype)
        if (nu := self.degrees_of_freedom) is not None:
            halves = rng.standard_gamma(0.5 * nu, shape if self.apart else (*shape[:-1], 1), dtype=dtype)
            rows *= np.sqrt(dtype(0.5 * nu - 1.0) / halves)  # half of chi2_nu is a gamma variable of shape nu / 2
        return rows

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
            yield noise.rows(rng, (runs, size)) @ root
    each = _runs_a_draw(noise.estimated_from, size, runs)
    draws = [_seen(rng, root, noise) for _ in range(-(-runs // each))]
    offsets, mixing = (np.stack(part) for part in zip(*draws, strict=True))
    while True:
        rows = noise.rows(rng, (len(draws), each, size))
        yield ((rows - offsets) @ mixing).reshape(-1, size)[:runs]


def _runs_a_draw(windows: int, size: int, runs: int) -> int:
    """How many runs share one draw of an estimate, so that long histories do not take long to simulate."""
    draws = max(_FEWEST_DRAWS, int(_DRAWN / (min(windows, _MOST_ESTIMATED) * size)))
    return -(-runs // min(draws, runs))


def _seen(rng: np.random.Generator, root: Floating, noise: SimulatedNoise) -> tuple[Floating, Floating]:
    """One draw of an estimate: the error of the mean, (1, K), and what makes scores of the rest, (K, K)."""
    assert noise.estimated_from is not None
    size, left = len(root), min(noise.estimated_from, _MOST_ESTIMATED)
    count, total, squares = left, np.zeros(size), np.zeros((size, size))
    while left:
        rows = noise.rows(rng, (min(left, max(_CHUNK // size, 1)), size))
        total += rows.sum(axis=0, dtype=float)
        squares += rows.T @ rows
        left -= len(rows)
    mean = total / count
    mixing = np.linalg.solve((squares - count * np.outer(mean, mean)) / (count - 1), root)
    scale = np.sqrt(np.einsum("ik,ik->k", root, mixing))
    return mean[None].astype(np.float32), (mixing / scale).astype(np.float32)


@dataclass(frozen=True)
class Tail:
    """The rate, a window, at which a statistic passes b: rate * exp(-slope (b - level)), fitted to `count` blocks."""

    level: float
    rate: float
    slope: float
    count: float

    @staticmethod
    def of(largest: Array, windows: int) -> Tail:
        """Fit the largest values of blocks of so many windows, by likelihood; blocks below the level are censored.

        A block stays below b with probability exp(-windows * rate(b)).
        """
        level = float(np.quantile(largest, 1.0 - _PASSING))
        beyond = largest[largest > level] - level
        n, below = len(beyond), len(largest) - len(beyond)
        slope = 1.0 / beyond.mean()
        for _ in range(100):
            decays = np.exp(-slope * beyond)
            expected = n / (below + decays.sum())
            slope = n / (beyond.sum() - expected * (beyond * decays).sum())
        return Tail(level, float(expected) / windows, float(slope), float(n))

    def log_time(self, value: Array | float, errors: float = 0.0) -> Array:
        """The logarithm of the mean time between values as large as this, less standard errors of the fit."""
        beyond = self.slope * (np.asarray(value, dtype=float) - self.level)
        return np.asarray(beyond - np.log(self.rate) - errors * np.sqrt((1.0 + beyond**2) / self.count))


@dataclass(frozen=True)
class Calibration:
    """Tails of the components, and of the largest of their log times, each lowered by its share.

    power: components are taken by their logarithms, so that their tails are those of a power.
    also: the same for another noise that the false-alarm rate must hold for.
    """

    components: tuple[Tail, ...]
    combined: Tail
    power: bool = False
    also: Calibration | None = None

    def combine(self, values: NDArray[Any]) -> Array:
        """One statistic of the components, (3, ...): the log time of the rarest."""
        if self.power:
            values = np.log(np.maximum(values, _LEAST))
        each = [
            tail.log_time(value) + np.log(share)
            for tail, value, share in zip(self.components, values, SHARES, strict=True)
        ]
        return np.asarray(np.maximum.reduce(each))

    def log_time(self, values: NDArray[Any]) -> Array:
        """The logarithm of the mean time, in windows, between values as rare as these, some standard errors below."""
        own = self.combined.log_time(self.combine(values), errors=_ERRORS)
        return own if self.also is None else np.minimum(own, self.also.log_time(values))

    def numbers(self) -> Array:
        """What a file must keep, (4, 4), or (8, 4) with another noise."""
        own = np.array([[t.level, t.rate, t.slope, t.count] for t in (*self.components, self.combined)])
        return own if self.also is None else np.concatenate([own, self.also.numbers()])

    @staticmethod
    def from_numbers(numbers: Array, noise: SimulatedNoise = GAUSSIAN) -> Calibration:
        """Build again what a file kept, or say what is wrong with it."""
        rows, noises = len(COMPONENTS) + 1, len(noise.simulated())
        if numbers.shape != (rows * noises, 4) or not np.isfinite(numbers).all():
            raise ValueError("its calibration is damaged")
        if (numbers[:, 1:] <= 0).any() or (numbers[:, 1] > 1).any() or (numbers[:, 3] < 2).any():
            raise ValueError("its calibration is damaged: rates, slopes and counts are positive")
        tails = [Tail(*row.tolist()) for row in numbers]
        built = None
        for first in range(0, len(tails), rows)[::-1]:
            *parts, combined = tails[first : first + rows]
            built = Calibration(tuple(parts), combined, noise != GAUSSIAN, built)
        assert built is not None
        return built


def calibrated(
    precision: Array,
    seed: Seed = 0,
    noise: SimulatedNoise = GAUSSIAN,
    *,
    windows: int | None = None,
    longest: int = LONGEST,
) -> Calibration:
    """Count in a simulation how rare values of the components are; the last results are cached.

    windows: how many are simulated; by default 40,000 to 400,000, fewer the more streams there are. Where the rate must
    hold for two kinds of noise, each has half of them.
    """
    root = np.sqrt(precision.diagonal())
    correlation = precision / np.outer(root, root)
    if windows is None:
        windows = int(np.clip(_NUMBERS / len(root), _FEWEST, _MOST))
    key = hashlib.sha256(correlation.tobytes()).hexdigest(), check_seed(seed), noise, windows, longest
    if key not in _CALIBRATIONS:
        while len(_CALIBRATIONS) >= _CACHED:
            del _CALIBRATIONS[next(iter(_CALIBRATIONS))]
        _CALIBRATIONS[key] = _calibration(correlation, *key[1:])
    return _CALIBRATIONS[key]


def _calibration(
    correlation: Array, seed: tuple[int, ...], noise: SimulatedNoise, windows: int, longest: int
) -> Calibration:
    """Tails of the components for all noises that the rate must hold for."""
    noises, found = noise.simulated(), None
    for one in reversed(noises):
        found = _tails(_simulated(correlation, seed, one, windows // len(noises), longest), noise != GAUSSIAN, found)
    assert found is not None
    return found


def _tails(simulated: Array, power: bool, also: Calibration | None) -> Calibration:
    """Tails of components, (3, T, P): each of its own, then of what they are combined to."""
    largest = [_block_maxima(values) for values in simulated]
    parts = tuple(Tail.of(np.log(values) if power else values, _BLOCK) for values in largest)
    first = Calibration(parts, parts[0], power)
    return Calibration(parts, Tail.of(_block_maxima(first.combine(simulated)), _BLOCK), power, also)


def _block_maxima(values: Array) -> Array:
    """The largest values of blocks of windows, of (T, P)."""
    return np.asarray(values.reshape(-1, _BLOCK, values.shape[1]).max(axis=1).ravel(), dtype=float)


def _simulated(correlation: Array, seed: tuple[int, ...], noise: SimulatedNoise, windows: int, longest: int) -> Array:
    """Components of independent runs while nothing is wrong, (3, T, P), from scores of this correlation."""
    runs = -(-windows // (_BLOCK * _BLOCKS))
    scores = quiet_scores(correlation, noise, runs, rng_for(seed, "watch", "calibration"))
    detector = StepDetector(np.eye(len(correlation)), plants=runs, longest=longest, dtype=np.float32)
    found = np.empty((len(COMPONENTS), _BLOCK * _BLOCKS, runs))
    for t in range(-_WARM, found.shape[1]):
        values = detector.advance(next(scores))
        if t >= 0:
            found[:, t] = values
    return found


class Calibrated:
    """The detector of one plant with a simulated calibration; one of the two rules of a Watch."""

    FIELDS = (Part("_detector"),)

    def __init__(self, precision: Array, calibration: Calibration) -> None:
        self.calibration = calibration
        self._detector = StepDetector(precision)

    def update(self, deviations: Array) -> float:
        """Take a window; return the logarithm of the mean time between windows as unusual as this one."""
        return float(self.calibration.log_time(self._detector.update(deviations)))

    def reset(self) -> None:
        self._detector.reset()
