"""What the last windows say against normal operation, kept up to date window by window, for one plant or for many.

With Q = S^-1 and g = Q (x - mean), a step in stream k alone moves g_k, given all other streams. Summed over the last w
windows and divided by its standard deviation, g_k is z_k ~ N(0, 1) while nothing is wrong, and u_k = z_k^2 / 2 is the
evidence for a step of the best size, in nats. A candidate onset w windows ago is judged by three components:

    one      the largest u_k: one stream;
    alike    the larger of sum of f(u_k) over k with z_k > 0 and of that over z_k < 0: some streams, the same way;
    several  sum of f(u_k) over all k: some streams, either way

where f(u) = u^2 / (u + C). Like log(1 - p + p e^u) of Xie and Siegmund (2013), the logarithm of a mixture in which a
stream takes part with probability p, it is quadratic at 0 and u less a constant far out; it needs neither logarithms
nor exponentials, and finds one to thirty of a hundred streams as soon. Each component takes its largest value over the
lengths w; `thresholds` says how rare such values are. `EDetector` is another rule, which needs no thresholds.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field, Sizes
from eccaht.streams.shifts import integrated_gain

LONGEST = 200  # windows back to the earliest candidate onset
COMPONENTS = ("one", "alike", "several")
LARGEST = 100.0  # standard deviations: what a window lies further off says no more, and bounds the rounding of sums
_SHRINKAGE = 5.0  # C, in nats
_SHORT, _COUNT = 12, 36  # lengths up to the first are all looked at; how many lengths there are
_BLOCK = 1 << 14  # numbers worked on at once, so that they stay in the cache of the processor
_NARROWEST = 64  # plants worked on at once, at least: fewer would be read from memory in small pieces
_LEAST = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-3}  # information in units of a window: below it none
_STANDS_OUT = 2.0  # nats
_PATTERNS = 64  # patterns of silent streams that are cached, or one for each plant that has its own Q

Floating = NDArray[Any]  # of double or of single precision


class Pattern(NamedTuple):
    """What silent streams S take from C, which is Q in units of the roots of its diagonal: C - through' through.

    silent: S, (m,). root: L^-1 with L L' = C_SS, (m, m). through: L^-1 C_S, (m, K). information: the diagonal of what
    is left, (K,), 0 for S itself.
    """

    silent: Index
    root: Array
    through: Array
    information: Array

    def left(self, scores: Floating) -> Floating:
        """Scores, (..., K), without what they had of the silent streams."""
        rest = scores - (scores[..., self.silent] @ self.root.T) @ self.through
        rest[..., self.silent] = 0.0
        return rest


class Scores:
    """Scores g_k / sqrt(Q_kk) with g = Q (x - mean): N(0, 1) while nothing is wrong.

    Silent streams are integrated out exactly.
    precision: Q, (K, K), of all plants, or of each, (P, K, K).
    """

    def __init__(self, precision: Array, dtype: type[np.float64] | type[np.float32] = np.float64) -> None:
        self.precision = precision
        self.size = precision.shape[-1]
        self.root = np.sqrt(precision.diagonal(axis1=-2, axis2=-1))  # of Q_kk, (K,) or (P, K)
        self._scaled = (precision / self.root[..., None, :]).astype(dtype)
        self._patterns: dict[tuple[int, bytes], Pattern] = {}

    def of(self, deviations: Array) -> tuple[Floating, Array | None]:
        """Scores of x - mean, (P, K), NaN where a stream is silent, and their variances, None where all are 1.

        A silent stream has score and variance 0.
        """
        silent = np.isnan(deviations)
        if not silent.any():
            return self.complete(deviations), None
        scores, information = self.complete(np.where(silent, 0.0, deviations)), np.ones(deviations.shape)
        for p in np.flatnonzero(silent.any(axis=1)).tolist():
            pattern = self.pattern(silent[p], p)
            scores[p], information[p] = pattern.left(scores[p]), pattern.information
        return scores, information

    def pattern(self, silent: NDArray[np.bool_], plant: int = 0) -> Pattern:
        """What is left of one plant's Q; the last patterns are cached."""
        shared = self.precision.ndim == 2
        key = (0 if shared else plant, silent.tobytes())
        if key not in self._patterns:
            while len(self._patterns) >= (_PATTERNS if shared else max(_PATTERNS, len(self.precision))):
                del self._patterns[next(iter(self._patterns))]
            precision, root = (self.precision, self.root) if shared else (self.precision[plant], self.root[plant])
            self._patterns[key] = self._pattern(np.flatnonzero(silent), precision, root)
        return self._patterns[key]

    def complete(self, deviations: Array) -> Floating:
        """Scores of x - mean, (P, K), or (..., K) where all plants share Q, without silent streams."""
        rows: Floating = deviations.astype(self._scaled.dtype, copy=False)
        return rows @ self._scaled if self._scaled.ndim == 2 else (rows[:, None, :] @ self._scaled)[:, 0]

    @staticmethod
    def _pattern(silent: Index, precision: Array, root: Array) -> Pattern:
        rows = precision[silent] / root[silent, None] / root
        inverse = np.linalg.inv(np.linalg.cholesky(rows[:, silent]))
        through = inverse @ rows
        information = np.maximum(1.0 - np.einsum("mk,mk->k", through, through), 0.0)
        information[silent] = 0.0
        return Pattern(silent, inverse, through, information)


def window_lengths(longest: int = LONGEST) -> tuple[int, ...]:
    """Lengths of the stretches that are looked at: all short ones, then in geometric progression.

    >>> window_lengths(30)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
    """
    short = list(range(1, min(_SHORT, longest) + 1))
    ratio = (longest / _SHORT) ** (1.0 / (_COUNT - _SHORT))
    while short[-1] < longest:
        aimed = _SHORT * ratio ** (len(short) - _SHORT + 1)
        short.append(min(longest, max(round(aimed), short[-1] + 1)))
    return tuple(short)


def components(z: Floating, axis: int = -1) -> Floating:
    """The three components of standardised sums, the streams along `axis`: (3, ...)."""
    u = z * z
    u *= u.dtype.type(0.5)
    one = u.max(axis=axis)
    shrunk = u + u.dtype.type(_SHRINKAGE)
    u *= u
    u /= shrunk
    several = u.sum(axis=axis)
    difference = np.copysign(u, z, out=u).sum(axis=axis)
    return np.stack([one, (several + np.abs(difference)) * u.dtype.type(0.5), several])


class StepDetector:
    """The components of one plant, or of `plants` independent ones side by side; memory and time a window are constant.

    precision: Q, (K, K), of all plants, or of each, (P, K, K). Windows before the first count as if all streams had
    shown their mean. Sums are kept as differences of running sums, which start again from 0 each time the ring of
    windows is full, so that rounding does not grow.

    >>> detector = StepDetector(np.eye(3))
    >>> detector.update(np.array([0.0, 4.0, np.nan])).round(2)
    array([8.  , 4.92, 4.92])
    """

    FIELDS = (
        Field("_sums", ("rows", "K", "plants")),
        Field("_information", ("rows", "K", "plants"), optional=True),
        Field("_now", (), int),
    )

    def __init__(
        self,
        precision: Array,
        *,
        plants: int | None = None,
        longest: int = LONGEST,
        dtype: type[np.float64] | type[np.float32] = np.float64,
    ) -> None:
        self.plants = plants
        self.lengths = np.array(window_lengths(longest))
        self.scores = Scores(precision, dtype)
        self._roots = np.sqrt(self.lengths).astype(dtype)
        self._sums = np.zeros((longest + 1, self.scores.size, plants or 1), dtype=dtype)
        self._information: Floating | None = None  # running sums of it, once a stream has been silent
        self._now = 0  # row of the last window

    def update(self, deviations: Array) -> Floating:
        """Take x - mean of a window, (K,) or (P, K), NaN where a stream is silent; return the components, (3,) or
        (3, P)."""
        return self.advance(*self.scores.of(np.atleast_2d(deviations)))

    def advance(self, scores: Floating, information: Array | None = None) -> Floating:
        """The same for g_k / sqrt(Q_kk), (P, K), which is N(0, 1) while nothing is wrong.

        information: its variance where streams are silent, (P, K), and 0 for these themselves.
        """
        sums, before = self._sums, self._now
        now = self._now = (before + 1) % len(sums)
        if information is not None and self._information is None:
            self._information = np.empty_like(sums)
            self._information[:] = self._ages(before)
        np.add(sums[before], np.clip(scores, -LARGEST, LARGEST).T, out=sums[now])
        if self._information is not None:
            added = 1.0 if information is None else information.T.astype(sums.dtype)
            np.add(self._information[before], added, out=self._information[now])
        if now == 0:
            sums -= sums[0].copy()
            if self._information is not None:
                self._information -= self._information[0].copy()
        found = self._largest()
        return found[:, 0] if self.plants is None else found

    def reset(self, plants: NDArray[np.bool_] | slice = slice(None)) -> None:
        self._sums[:, :, plants] = 0.0
        if self._information is not None:
            self._information[:, :, plants] = self._ages(self._now)

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        rows = int(self.lengths[-1]) + 1
        shape = rows, self.scores.size, self.plants or 1
        if self._sums.shape != shape or self._now >= rows:
            raise ValueError("its sums are damaged: they are those of other windows")
        if self._information is not None:
            order = (self._now + 1 + np.arange(rows)) % rows
            if (np.diff(self._information[order], axis=0) < -_LEAST[self._sums.dtype]).any():
                raise ValueError("its information is damaged: it falls from one window to the next")

    def _ages(self, now: int) -> Floating:
        """Running sums of the information of windows without silent streams, 0 at `now`, (rows, 1, 1)."""
        rows = len(self._sums)
        return -((now - np.arange(rows)) % rows).astype(self._sums.dtype)[:, None, None]

    def _largest(self) -> Floating:
        """Each component's largest value over the lengths, (3, P)."""
        sums = self._sums
        _, K, P = sums.shape
        found = np.zeros((len(COMPONENTS), P), dtype=sums.dtype)
        width = min(P, max(_NARROWEST, _BLOCK // K))
        depth = max(1, _BLOCK // (K * width))
        for left in range(0, P, width):
            some = slice(left, left + width)
            for first in range(0, len(self.lengths), depth):
                rows = (self._now - self.lengths[first : first + depth]) % len(sums)
                z = sums[self._now, :, some] - sums[rows, :, some]
                if self._information is None:
                    z /= self._roots[first : first + depth, None, None]
                else:
                    known = self._information[self._now, :, some] - self._information[rows, :, some]
                    least = _LEAST[sums.dtype]
                    z *= known > least
                    z /= np.sqrt(np.maximum(known, least, out=known), out=known)
                by_length = components(z[:, :, 0])[:, :, None] if P == 1 else components(z, axis=1)
                np.maximum(found[:, some], by_length.max(axis=1), out=found[:, some])
        return found


class EDetector:
    """The sum, over the last windows as onsets, of likelihood ratios, each a mean of two.

    - one stream, any of them alike, moved by N(0, 1) in units of its noise given all others;
    - those streams whose sums since the onset stand out, moved as far as they were before the present window.

    Each ratio is a martingale of mean 1 from its onset on, so that the sum grows by 1 a window in the mean while
    nothing is wrong: the mean time until it reaches A is at least A, whatever the covariance, without any simulation.
    """

    FIELDS = (
        Field("_sums", (LONGEST, "K")),
        Field("_information", (LONGEST, "K"), low=0.0, high=2.0 * LONGEST),
        Field("_several", (LONGEST,), low=-math.inf),
        Field("_now", (), int, high=LONGEST - 1),
    )

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
        one = _log_sum(integrated_gain(self._sums[began], known)) - np.log(known.shape[1])
        return float(_log_sum(np.logaddexp(one, self._several[began])) - np.log(2.0))

    def reset(self) -> None:
        self._sums[:], self._information[:], self._several[:], self._now = 0.0, 0.0, -np.inf, 0


def _log_sum(logarithms: Array) -> Array:
    """The logarithm of the sum along the last axis."""
    largest = logarithms.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(logarithms - largest).sum(axis=-1)) + largest[..., 0])
