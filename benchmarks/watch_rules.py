"""Rules that watch K streams, one vector a window, written from the papers and vectorised over replicas.

A rule is given the covariance of the streams and reduces each window to one statistic or a few; it alarms when one of
them reaches its threshold. Ours, T2 and MEWMA, the charts of the trade, use all of the covariance, the others its
diagonal. Whatever follows the protocol `Rule` takes part in the simulated comparison with one more line in `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eccaht import Problem, UnknownShift, Watch
from eccaht.base.arrays import Array
from eccaht.streams.watch.evidence import Evidence

LONGEST = 200  # windows that Xie & Siegmund's rule and the largest GLR look back
LENGTHS = tuple(sorted({*range(1, 13), *np.geomspace(12, LONGEST, 25).round().astype(int).tolist()}))
SPARSITY = 0.1  # p0 of Xie & Siegmund
_BLOCK = 1 << 16  # numbers that a scan works on at a time, which stay in the cache

Flags = NDArray[np.bool_]
Combine = Callable[[Array], Array]  # standardised sums (R, K) -> (R,)


class Rule(Protocol):
    """Follows R replicas of the K streams side by side, in the precision of what it is given."""

    def start(self, replicas: int) -> None:
        """Forget everything; the next window is the first one."""

    def update(self, X: Array) -> Array:
        """Take the next window of each replica, (R, K), and return the statistics, (R, m)."""

    def keep(self, which: Flags) -> None:
        """Go on with some of the replicas, (R,) of bool."""


def beyond(statistics: Array, thresholds: Array) -> Flags:
    """Where one of the statistics, (..., m), has reached its threshold, (m,)."""
    return np.asarray(np.any(statistics >= thresholds, axis=-1))


def _zeros(*shape: int) -> Array:
    """Of single precision, which becomes double by what is added to it."""
    zeros: Any = np.zeros(shape, dtype=np.float32)
    return zeros


class Scan:
    """The largest value, over sums of the last w windows, of a function of z = sum / sqrt(w).

    lengths: the w that are tried; all up to 200 cost six times as much as this grid, which reproduces published delays.
    """

    def __init__(self, covariance: Array, combine: Combine, lengths: tuple[int, ...] = LENGTHS) -> None:
        self._scale = np.sqrt(np.diag(covariance))
        self._combine, self._lengths = combine, np.array(lengths)
        self.start(1)

    def start(self, replicas: int) -> None:
        """Forget everything."""
        self._sums = _zeros(int(self._lengths[-1]) + 1, replicas, self._scale.size)  # of all windows, by time, in turns
        self._time = 0

    def update(self, X: Array) -> Array:
        """The maximum over the lengths that have passed since the start."""
        _, R, K = self._sums.shape
        total = self._sums[self._time % len(self._sums)] + X / self._scale.astype(X.dtype)
        self._time += 1
        self._sums = self._sums.astype(total.dtype, copy=False)
        self._sums[self._time % len(self._sums)] = total
        lengths, best = self._lengths[self._lengths <= self._time], np.full(R, -np.inf, dtype=total.dtype)
        some = max(_BLOCK // (R * K), 1)
        for start in range(0, lengths.size, some):
            w = lengths[start : start + some]
            z = total - self._sums[(self._time - w) % len(self._sums)]
            z *= (w**-0.5).astype(z.dtype)[:, None, None]
            found = self._combine(z.reshape(-1, K)).reshape(w.size, R)
            np.maximum(best, found.max(axis=0), out=best)
        return best[:, None]

    def keep(self, which: Flags) -> None:
        """Go on with some of the replicas."""
        self._sums = self._sums[:, which]


def mixture(z: Array) -> Array:
    """Sum over streams of log(1 - p0 + p0 exp(z^2 / 2)), Xie & Siegmund (2013); written so that it cannot overflow."""
    u = z * z
    u *= 0.5
    rest = np.exp(-u)
    rest *= 1.0 - SPARSITY
    rest += SPARSITY
    u += np.log(rest, out=rest)
    return u.sum(axis=1)


def rising_mixture(z: Array) -> Array:
    """The same for streams that can only rise."""
    return mixture(np.maximum(z, 0.0))


def largest(z: Array) -> Array:
    """The generalised likelihood ratio of the stream that deviates most, max z^2 / 2."""
    return 0.5 * np.maximum(z.max(axis=1), -z.min(axis=1)) ** 2


def largest_rise(z: Array) -> Array:
    """The same for streams that can only rise."""
    return 0.5 * np.maximum(z.max(axis=1), 0.0) ** 2


class SumOfCusums:
    """Mei (2010): the sum over streams of their CUSUMs, each the larger one of up and down.

    shift: what the CUSUMs expect, in standard deviations of a stream.
    """

    def __init__(self, covariance: Array, shift: float = 1.0) -> None:
        self._scale, self._shift = np.sqrt(np.diag(covariance)), shift
        self.start(1)

    def start(self, replicas: int) -> None:
        """All CUSUMs are 0."""
        self._up = self._down = _zeros(replicas, self._scale.size)

    def update(self, X: Array) -> Array:
        """W = max(0, W + shift x - shift^2 / 2), and the same for -x."""
        step, half = X * (self._shift / self._scale).astype(X.dtype), 0.5 * self._shift**2
        self._up = np.maximum(self._up + step - half, 0.0)
        self._down = np.maximum(self._down - step - half, 0.0)
        return np.maximum(self._up, self._down).sum(axis=1, keepdims=True)

    def keep(self, which: Flags) -> None:
        """Go on with some of the replicas."""
        self._up, self._down = self._up[which], self._down[which]


class Mewma:
    """Lowry et al. (1992): z = weight x + (1 - weight) z, judged by z' Cov(z)^-1 z with the exact covariance of z.

    weight = 1 is Hotelling's T2 of the window alone.
    """

    def __init__(self, covariance: Array, weight: float = 1.0) -> None:
        self._whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T
        self._weight = weight
        self.start(1)

    def start(self, replicas: int) -> None:
        """The average is 0, and so is its variance."""
        self._average = _zeros(replicas, len(self._whitening))
        self._variance = 0.0

    def update(self, X: Array) -> Array:
        """The distance of the average from 0."""
        kept = 1.0 - self._weight
        self._average = self._weight * (X @ self._whitening.astype(X.dtype)) + kept * self._average
        self._variance = self._weight**2 + kept**2 * self._variance
        return np.einsum("rk,rk->r", self._average, self._average)[:, None] / self._variance

    def keep(self, which: Flags) -> None:
        """Go on with some of the replicas."""
        self._average = self._average[which]


class Ocd:
    """Chen, Wang & Samworth (2022): CUSUMs of several sizes a stream, whose tails say where to sum the other streams.

    For every size b and stream j the tail is the time since the CUSUM of shift b was last 0. Statistics: the largest
    CUSUM; over sizes and streams, the largest sum of squares of the other streams' standardised tail sums; and the
    same with only those beyond sqrt(2 log K). They need a threshold each. norm: the smallest Euclidean norm of a
    change, the paper's beta.
    """

    def __init__(self, covariance: Array, norm: float = 1.0) -> None:
        self._scale = np.sqrt(np.diag(covariance))
        K = self._scale.size
        # the last and smallest size serves the CUSUMs alone
        sizes = norm / np.sqrt(2.0 ** np.arange(int(np.log2(K)) + 2) * np.log2(2 * K))
        self._sizes = np.concatenate([sizes, -sizes]).astype(np.float32)[:, None]
        self._pairs = np.tile(np.arange(sizes.size) < sizes.size - 1, 2)
        self._least = float(2.0 * np.log(K))  # of a square
        self.start(1)

    def start(self, replicas: int) -> None:
        """All CUSUMs are 0."""
        shape = (replicas, self._sizes.size, self._scale.size)
        self._tails, self._sums = np.zeros(shape, dtype=np.int32), _zeros(*shape)
        self._past = _zeros(replicas, 64, self._scale.size)  # sums of all windows, by time
        self._time = 0

    def update(self, X: Array) -> Array:
        """The three statistics."""
        x = X / self._scale.astype(X.dtype)
        self._extend(x)
        self._tails += 1
        self._sums = self._sums + x[:, None]
        cusums = self._sizes * (self._sums - (0.5 * self._sizes) * self._tails.astype(x.dtype))
        over = cusums <= 0.0
        self._tails[over], self._sums[over], cusums[over] = 0, 0.0, 0.0
        dense, sparse = self._others()
        return np.column_stack([cusums.max(axis=(1, 2)), dense, sparse])

    def _extend(self, x: Array) -> None:
        if self._time + 1 == self._past.shape[1]:
            self._past = np.concatenate([self._past, np.zeros_like(self._past)], axis=1)
        self._past = self._past.astype(np.result_type(self._past, x), copy=False)
        self._past[:, self._time + 1] = self._past[:, self._time] + x
        self._time += 1

    def _others(self) -> tuple[Array, Array]:
        """Tail sums of all streams depend on the length of the tail alone, and few lengths are different."""
        tails, own = self._tails[:, self._pairs], self._sums[:, self._pairs]
        replicas = np.arange(len(tails))[:, None, None]
        asked = np.zeros((len(tails), self._time + 1), dtype=bool)
        asked[replicas, tails] = True
        asked[:, 0] = False
        r, t = np.nonzero(asked)
        z = self._past[r, self._time - t]
        np.subtract(self._past[r, self._time], z, out=z)
        z *= (1.0 / np.sqrt(t)).astype(z.dtype)[:, None]
        table = np.zeros((2, *asked.shape), dtype=z.dtype)
        z *= z
        table[0, r, t] = z.sum(axis=1)
        large = np.flatnonzero(z.ravel() >= self._least)
        table[1, r, t] = np.bincount(large // z.shape[1], weights=z.ravel()[large], minlength=len(z))
        mine = own * own
        mine /= np.maximum(tails, 1).astype(mine.dtype)
        dense = table[0][replicas, tails] - mine
        sparse = table[1][replicas, tails] - np.where(mine >= self._least, mine, 0.0)
        return dense.max(axis=(1, 2)), sparse.max(axis=(1, 2))

    def keep(self, which: Flags) -> None:
        """Go on with some of the replicas."""
        self._tails, self._sums, self._past = self._tails[which], self._sums[which], self._past[which]


class Ours:
    """`eccaht.Watch` for steps of unknown size in up to a third of the streams: its evidence with a threshold of 1."""

    def __init__(self, covariance: Array, mean: Array | float = 0.0, **noise: Any) -> None:
        problem = Problem(
            covariance, shift=UnknownShift(1.0), n_anomalies=(1, len(covariance) // 3), budget=1.0, mean=mean, **noise
        )
        self._mean, self._watch = problem.mean, Watch(problem, false_alarm_every=1.0)
        self._whole = self._watch._readings.whole(np.ones(problem.size, dtype=bool))
        self.start(1)

    def start(self, replicas: int) -> None:
        """Forget everything."""
        self._each = [Evidence(self._watch.problem) for _ in range(replicas)]

    def update(self, X: Array) -> Array:
        """One statistic; there are no loops over replicas in numpy here, so that this is slow for many."""
        W, root, information = self._whole
        for evidence, x in zip(self._each, X.astype(float), strict=True):
            evidence.update(W, root @ (x - self._mean), information)
        return np.array([[evidence.log - self._watch._threshold] for evidence in self._each])

    def keep(self, which: Flags) -> None:
        """Go on with some of the replicas."""
        self._each = [evidence for evidence, left in zip(self._each, which.tolist(), strict=True) if left]

    def restart(self, which: Flags) -> None:
        """Forget everything of some of the replicas."""
        for place in np.flatnonzero(which).tolist():
            self._each[place] = Evidence(self._watch.problem)


Make = Callable[[Array], Rule]  # from the covariance that the rule is given, (K, K)
RULES: dict[str, Make] = {
    "eccaht": Ours,
    "Xie-Siegmund, either sign": lambda S: Scan(S, mixture),
    "Xie-Siegmund, rising": lambda S: Scan(S, rising_mixture),
    "largest GLR, either sign": lambda S: Scan(S, largest),
    "largest GLR, rising": lambda S: Scan(S, largest_rise),
    "Mei": SumOfCusums,
    "ocd": Ocd,
    "T2": Mewma,
    "MEWMA 0.2": lambda S: Mewma(S, 0.2),
    "MEWMA 0.1": lambda S: Mewma(S, 0.1),
}
