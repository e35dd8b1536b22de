"""Where readings come from: the interface of a world, any function of weights as one, and the simulated one."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, as_count, as_floats, as_vector, check_finite, inner
from eccaht.base.randomness import Seed, rng_for
from eccaht.streams.problem import Problem
from eccaht.streams.sets import SetPrior

NO_TIME = np.datetime64("NaT", "us")


class Reading(NamedTuple):
    """The weights really used, (K,) and read-only, what they read, and from which window, if there is one."""

    weights: Array
    value: float
    window: int = -1  # counted from 0
    time: np.datetime64 = NO_TIME  # start of the window


class World(Protocol):
    """Where readings come from: a `Simulator`, a `Replay` of recorded windows, or an `Instrument`."""

    def read(self, c: Array) -> Reading | None:
        """Read the measurement c; None where the data end."""


class Instrument:
    """Any function from weights to a reading as a world."""

    def __init__(self, measure: Callable[[Array], float]) -> None:
        self._measure = measure

    def read(self, c: Array) -> Reading:
        return Reading(c, self._measure(c))


def as_world(world: World | Callable[[Array], float]) -> World:
    """Return a world as it is, and a function from weights to a reading as an instrument."""
    if hasattr(world, "read"):
        return cast("World", world)
    if not callable(world):
        raise ValueError(f"readings come from a world or a function of weights, not from {type(world).__name__}")
    return Instrument(world)


class Simulator:
    """Readings of N(c'mu_A, c'S c) for a hidden anomalous set A, given or drawn at random.

    The set is drawn from (seed, "anomalies") and the noise from (seed, "noise", *names), so that several policies
    can face the same set with noise of their own. Where the problem leaves the number of anomalies or their shifts
    open, they are drawn from the prior too (sets.SetPrior), unless `shifts` gives one shift per anomaly. Where the mean
    was estimated, its error is drawn; the covariance is taken to be right.

    >>> problem = Problem(np.eye(5), shift=3.0, n_anomalies=2, budget=1.0)
    >>> Simulator(problem, anomalies=[3, 1]).anomalies
    array([1, 3])
    """

    def __init__(
        self,
        problem: Problem,
        *,
        seed: Seed = 0,
        anomalies: Sequence[int] | Index | None = None,
        names: Sequence[str] = (),
        shifts: ArrayLike | None = None,
    ) -> None:
        problem.check_gaussian("simulated readings")
        self.problem = problem
        least, most = problem.sizes
        if anomalies is None:
            rng = rng_for(seed, "anomalies")
            drawn = SetPrior(problem.size, *problem.sizes).random_sets(rng, 1) if least < most else None
            number = least if drawn is None else int((drawn < problem.size).sum())
            self.anomalies: Index = np.sort(rng.choice(problem.size, number, replace=False))
        else:
            self.anomalies = _checked_set(anomalies, problem)
        self.shifts = _shifts_of(self.anomalies, problem, shifts, seed)
        self._means = problem.mean.copy()
        self._means[self.anomalies] += self.shifts
        if problem.estimated_from is not None:
            error = problem.covariance.sample(rng_for(seed, "mean"), 1)[0]
            self._means += error / math.sqrt(problem.estimated_from)
        self._noise = rng_for(seed, "noise", *names)

    def __repr__(self) -> str:
        return f"Simulator({self.problem!r}, anomalies={self.anomalies.tolist()})"

    def measure(self, c: ArrayLike) -> float:
        """Return one reading of the measurement c."""
        weights = as_floats(c, "measurement")
        if weights.shape != (self.problem.size,):
            raise ValueError(f"measurement has shape {weights.shape}, expected ({self.problem.size},)")
        if not math.isfinite(self.problem.noise_variance(weights)):
            check_finite(weights, "measurement")
        return self.read(weights).value

    def measure_many(self, C: ArrayLike) -> Array:
        """Readings, (q,), of the measurements C, (q, K), at one moment: they share its noise (`policy.tell_many`)."""
        rows = np.array([self.problem.checked_measurement(c) for c in np.atleast_2d(as_floats(C, "measurements"))])
        moment = self._means + self.problem.covariance.sample(self._noise, 1)[0]
        return rows @ moment + self.problem.readout_noise * self._noise.standard_normal(len(rows))

    def read(self, c: Array) -> Reading:
        """One reading of weights that a policy chose, which are trusted."""
        deviation = math.sqrt(self.problem.noise_variance(c))
        return Reading(c, inner(c, self._means) + float(self._noise.standard_normal()) * deviation)

    def sample(self, size: int) -> Array:
        """Draw whole vectors, (size, K), every stream read by itself, from the anomalous state (`policy.observe`)."""
        drawn = self.problem.covariance.sample(self._noise, as_count(size, "size", least=1))
        drawn += self._means
        if self.problem.readout_noise:
            drawn += self.problem.readout_noise * self._noise.standard_normal(drawn.shape)
        return drawn


def _shifts_of(anomalies: Index, problem: Problem, given: ArrayLike | None, seed: Seed) -> Array:
    if given is not None:
        return as_vector(given, anomalies.size, "shifts")
    shifts = problem.shift[anomalies]
    if problem.unknown_shift:
        shifts = shifts + problem.shift_spread[anomalies] * rng_for(seed, "shifts").standard_normal(anomalies.size)
    return shifts


def _checked_set(anomalies: Sequence[int] | Index, problem: Problem) -> Index:
    streams = sorted(as_count(k, "anomalous stream", least=0) for k in np.asarray(anomalies).tolist())
    least, most = problem.sizes
    if len(set(streams)) != len(streams) or not least <= len(streams) <= most:
        number = str(least) if least == most else f"{least} to {most}"
        raise ValueError(f"anomalies must be {number} different streams, not {streams}")
    if streams and streams[-1] >= problem.size:
        raise ValueError(f"anomalous stream {streams[-1]} does not exist: there are {problem.size} streams")
    return np.array(streams, dtype=np.intp)
