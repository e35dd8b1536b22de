"""Readings of one step in units of their noise, and those of the last steps."""

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index, Mask
from eccaht.base.codec import Field
from eccaht.streams.covariance import with_ridge
from eccaht.streams.problem import Problem

LONGEST = 200  # steps back to the earliest onset that an alarm can have
_PATTERNS = 8  # patterns of silent streams that are cached
_DEPENDENT = 1e-10  # share of a reading's variance that the others leave, below which it is one of them again
_MARGIN = 2.0  # standard deviations by which the noise of an estimated direction may exceed its mean


class Whitened(NamedTuple):
    """Weights of readings in units of their noise, W (q, K), what turns readings into such, and W squared by stream."""

    weights: Array
    root: Array  # (q, q)
    information: Array  # (K,)


class Step(NamedTuple):
    """The readings of a step less their mean, (q,) of C, or (K,) of whole vectors, and in units of their noise."""

    C: Array | None
    rest: Array
    noise: Whitened
    w: Array


class Readings:
    """The readings of the last steps of a problem."""

    FIELDS = (
        Field("_told", ("steps",), int, low=-1),
        Field("_rows", ("rows", "K")),
        Field("_rests", ("values",), nan=True),
    )

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._steps: deque[Step] = deque(maxlen=LONGEST)
        self._patterns: dict[bytes, Whitened] = {}

    def take(self, C: Array | None, rest: Array) -> Step:
        """Take readings less their mean: of C, or of all streams, NaN where one is silent."""
        if C is None:
            there = ~np.isnan(rest)
            noise, values = self.whole(there), rest[there]
        else:
            noise, values = self.whitened(C), rest
        self._steps.append(Step(C, rest, noise, noise.root @ values))
        return self._steps[-1]

    def last(self, count: int) -> list[Step]:
        return list(self._steps)[max(len(self._steps) - count, 0) :]

    def __len__(self) -> int:
        return len(self._steps)

    def whole(self, there: Mask) -> Whitened:
        """Of a vector of these streams; the last patterns are cached."""
        key = there.tobytes()
        if key not in self._patterns:
            while len(self._patterns) >= _PATTERNS:
                del self._patterns[next(iter(self._patterns))]
            streams = np.flatnonzero(there)
            covariance = with_ridge(self._problem.covariance, self._problem.readout_noise**2).dense()
            self._patterns[key] = self._root(covariance[np.ix_(streams, streams)], np.eye(there.size)[streams])
        return self._patterns[key]

    def whitened(self, C: Array) -> Whitened:
        problem = self._problem
        noise = C @ problem.covariance.matvec(np.ascontiguousarray(C.T))
        noise[np.diag_indices_from(noise)] += problem.readout_noise**2
        return self._root(noise, C)

    def _root(self, noise: Array, C: Array) -> Whitened:
        """The symmetric root of the inverse, so that heavy tails of single streams stay apart."""
        unit = np.sqrt(noise.diagonal())
        values, vectors = np.linalg.eigh(0.5 * (noise + noise.T) / np.outer(unit, unit))
        if values.size and values[0] < _DEPENDENT:
            raise ValueError(
                "the noise of a measurement follows from that of the others of this step, to all digits: leave one out"
            )
        scale = margin(self._problem) ** -0.5
        root = scale * (vectors / np.sqrt(values)) @ vectors.T / unit
        weights = root @ C
        return Whitened(weights, root, (weights**2).sum(axis=0))

    @property
    def _told(self) -> Index:
        return np.array([-1 if step.C is None else len(step.C) for step in self._steps], dtype=np.int64)

    @_told.setter
    def _told(self, counts: Index) -> None:
        self._counts = counts.tolist()

    @property
    def _rows(self) -> Array:
        return np.concatenate([np.zeros((0, self._problem.size)), *(s.C for s in self._steps if s.C is not None)])

    @_rows.setter
    def _rows(self, rows: Array) -> None:
        self._kept = rows

    @property
    def _rests(self) -> Array:
        return np.concatenate([np.zeros(0), *(step.rest for step in self._steps)])

    @_rests.setter
    def _rests(self, rests: Array) -> None:
        """Take all steps again; what is kept of them comes before."""
        K, rows, first = self._problem.size, 0, 0
        sizes = [K if count < 0 else count for count in self._counts]
        if len(sizes) > LONGEST or sum(sizes) != len(rests) or sum(c for c in self._counts if c > 0) != len(self._kept):
            raise ValueError("its readings are damaged: they do not fit their measurements")
        self._steps.clear()
        for count, size in zip(self._counts, sizes, strict=True):
            C = None if count < 0 else self._kept[rows : rows + count]
            self.take(C, rests[first : first + size])
            rows, first = rows + max(count, 0), first + size
        del self._counts, self._kept


def margin(problem: Problem) -> float:
    """By how much the noise of a direction may exceed that of the problem, which holds in the mean over directions.

    A watch that never stops finds the worst one. With m vectors they vary by sqrt(2 / (m - K)), and the mean by 1 / m.
    """
    m = problem.estimated_from
    return 1.0 if m is None else (1.0 + 1.0 / m) * (1.0 + _MARGIN * math.sqrt(2.0 / max(m - problem.size, 1)))
