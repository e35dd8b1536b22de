"""How rare values of the detector's components are while nothing is wrong, and from which on they raise an alarm.

The default is counted in a simulation of the streams as the problem has them. Of each component, and then of their
combination, blocks of windows give the tail of the largest value: beyond a level that a quarter of the blocks pass, the
rate of passing b falls as exp(-slope (b - level)), and longer times are extrapolated by it. The slope of all three
components grows, if at all, with b, so that extrapolation errs on the side of fewer false alarms; two standard errors
of the fit are added on that side too. Where the noise has heavy tails or the covariance was estimated, the rate falls
more slowly the larger b is; then components are taken by their logarithms, and the rate falls as a power of b.

`EDetector` needs no simulation. It sums likelihood ratios of alternatives that began in each of the last
windows. Each ratio is a martingale of mean 1 from its onset on, so that the sum grows by 1 a window in the mean while
nothing is wrong, and the mean time until it reaches A is at least A, whatever the covariance.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.archive import check_keys
from eccaht.base.arrays import Array
from eccaht.base.randomness import Seed, check_seed, rng_for
from eccaht.base.stored import check_bounded
from eccaht.streams.watch.detector import COMPONENTS, LONGEST, Detector
from eccaht.streams.watch.scores import Scores
from eccaht.streams.watch.simulation import GAUSSIAN, SimulatedNoise, quiet_scores

SHARES = (0.3, 0.5, 0.2)  # of the false alarms, by component
_NUMBERS, _FEWEST, _MOST = 2e7, 40_000, 400_000  # windows that are simulated: so many numbers, within limits
_BLOCK = 250  # windows, of which the largest value is taken
_BLOCKS = 4  # of one run
_WARM = LONGEST  # windows before the first block: onsets as early as ever are candidates in it
_PASSING = 0.25  # share of the blocks that pass the level of a tail
_ERRORS = 2.0  # standard errors of the fitted tail by which a threshold is kept on the safe side
_CACHED = 64  # calibrations
_STANDS_OUT = 2.0  # nats
_LEAST = 1e-9  # nats: what logarithms of components begin at


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


_CALIBRATIONS: dict[tuple[str, tuple[int, ...], SimulatedNoise, int, int], Calibration] = {}


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
    detector = Detector(np.eye(len(correlation)), plants=runs, longest=longest, dtype=np.float32)
    found = np.empty((len(COMPONENTS), _BLOCK * _BLOCKS, runs))
    for t in range(-_WARM, found.shape[1]):
        values = detector.advance(next(scores))
        if t >= 0:
            found[:, t] = values
    return found


class Calibrated:
    """The detector of one plant with a simulated calibration; one of the two rules of a Watch."""

    def __init__(self, precision: Array, calibration: Calibration) -> None:
        self.calibration = calibration
        self._detector = Detector(precision)

    def update(self, deviations: Array) -> float:
        """Take a window; return the logarithm of the mean time between windows as unusual as this one."""
        return float(self.calibration.log_time(self._detector.update(deviations)))

    def reset(self) -> None:
        self._detector.reset()

    def state(self) -> dict[str, NDArray[Any]]:
        return self._detector.state() | {"calibration": self.calibration.numbers()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from a kept state, or say what is wrong with it; the calibration is the constructor's."""
        self._detector.restore({name: array for name, array in state.items() if name != "calibration"})


class EDetector:
    """The sum, over the last windows as onsets, of likelihood ratios, each a mean of two.

    - one stream, any of them alike, moved by N(0, 1) in units of its noise given all others;
    - those streams whose sums since the onset stand out, moved as far as they were before the present window.

    The logarithm of the sum is at least log A after A windows in the mean, at the earliest, while nothing is wrong.
    """

    def __init__(self, precision: Array, *, longest: int = LONGEST) -> None:
        self.scores = Scores(precision)
        root = self.scores.root
        self._correlation = precision / np.outer(root, root)
        self._sums = np.zeros((longest, len(root)))  # of the scores since each onset
        self._information = np.zeros((longest, len(root)))
        self._several = np.full(longest, -np.inf)  # log likelihood ratio of several streams; -inf before the beginning
        self._now = 0  # the row that the next onset takes

    def update(self, deviations: Array) -> float:
        """Take x - mean of a window, (K,), NaN where a stream is silent; return the logarithm of the sum."""
        scores, information = self.scores.of(deviations[None])
        self._sums[self._now], self._information[self._now], self._several[self._now] = 0.0, 0.0, 0.0
        self._now = (self._now + 1) % len(self._sums)
        stands_out = self._sums**2 > 2.0 * _STANDS_OUT * self._information
        sizes = np.where(stands_out, self._sums / (self._information + 1.0), 0.0)
        self._several += sizes @ scores[0] - 0.5 * np.einsum("wk,wk->w", sizes @ self._correlation, sizes)
        if information is not None:
            silent = self.scores.pattern(np.isnan(deviations))
            self._several += 0.5 * ((sizes @ silent.through.T) ** 2).sum(axis=1)
        self._sums += scores[0]
        self._information += 1.0 if information is None else information[0]
        began = np.isfinite(self._several)
        known = self._information[began] + 1.0
        one = _log_sum(0.5 * self._sums[began] ** 2 / known - 0.5 * np.log(known)) - np.log(known.shape[1])
        return float(_log_sum(np.logaddexp(one, self._several[began])) - np.log(2.0))

    def reset(self) -> None:
        self._sums[:], self._information[:], self._several[:], self._now = 0.0, 0.0, -np.inf, 0

    def state(self) -> dict[str, NDArray[Any]]:
        kept = {"sums": self._sums, "information": self._information, "several": self._several}
        return {**kept, "now": np.array([self._now])}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        check_keys(state, set(self.state()), "state")
        for name, array in self.state().items():
            if state[name].shape != array.shape or state[name].dtype.kind != array.dtype.kind:
                raise ValueError(f"its {name} are damaged")
        check_bounded(state["sums"], "sums")
        check_bounded(state["information"], "information", 2.0 * len(self._sums))
        if (state["information"] < 0).any() or not (state["several"] < np.inf).all():
            raise ValueError("its likelihood ratios are damaged")
        if not 0 <= state["now"][0] < len(self._sums):
            raise ValueError("its count of windows is damaged")
        self._sums[:], self._information[:] = state["sums"], state["information"]
        self._several[:], self._now = state["several"], int(state["now"][0])


def _log_sum(logarithms: Array) -> Array:
    """The logarithm of the sum along the last axis."""
    largest = logarithms.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(logarithms - largest).sum(axis=-1)) + largest[..., 0])
