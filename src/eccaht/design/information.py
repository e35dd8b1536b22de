"""The measurement whose reading tells most about which of many sets is the right one.

If set s is right, with shifts x_s, the reading of c has mean c'x_s, and its noise variance is c'S c in any case. Among
all c the one of largest mutual information between set and reading is wanted. The gradient of that information is
known in closed form: it is the covariance of x and c'x that is expected to be *left* after the reading (Palomar
& Verdu 2006). So at a maximum

    c  is proportional to  S^-1 D,   D = E[ Cov(x, c'x | reading) ],

which is solved by iteration. D is the contrast that the reading is about: for two sets it is their difference,
and c their pair design. Where readings are noisy nothing is settled by one of them, D = Cov(x) c, and c is the top
generalized eigenvector of (Cov(x), S): the direction of largest variance. Where readings are precise that direction
would spend a whole reading on one doubtful stream, while the largest-information one settles several at once.

The information depends on the means c'x_s alone, which are numbers on a line: they are counted into bins a quarter
of the noise wide, so that any number of sets costs one pass and a short convolution.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array, Index, support_of
from eccaht.design.pair import check_budget, solve_contrast
from eccaht.problem import Problem
from eccaht.sets import Hypotheses

_POWER_STEPS, _STEPS = 3, 8
_ENOUGH = 1e-4  # nats: stop when a step gains less
_WIDTH = 0.25  # of a bin, in standard deviations of the noise
_FEWEST, _NARROWEST = 32, 0.02  # means that lie closer together get narrower bins
_BINS = 1024  # at most: where readings are far more precise than the sets lie apart, bins and noise are widened
_REACH = 5.0  # standard deviations of noise that count
_NEVER = 1e-300
_RARE = 1e-3  # share of a row's probability below which a stream's shift says nothing of the scale

Floats = NDArray[np.float32]


class InformationDesign:
    """The most informative measurement for weighted hypotheses."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        if not problem.unknown_shift:
            weakest = np.argpartition(np.abs(problem.shift), 1)[:2]
            check_budget(problem, *sorted(weakest.tolist()))

    def __call__(self, hypotheses: Hypotheses, rng: np.random.Generator) -> Array:
        """Return c with |c|_1 = budget; `rng` draws the direction from which the iteration starts.

        Where |c|_1 <= budget binds per unit of contrast, as in the pair design, c is the least noisy measurement of
        the contrast D under it; D is scaled like a swap, its largest entry being the largest shift in it.
        """
        problem = self._problem
        contrast = self._best_contrast(hypotheses, rng)
        places = support_of(contrast)
        largest = max(self._largest_shift(hypotheses, places), 1.0 / problem.budget)
        values = contrast[places] * (largest / np.abs(contrast).max())
        solution = solve_contrast(problem.covariance, places, values, problem.budget)
        return solution.scaled(problem.budget)

    def _largest_shift(self, hypotheses: Hypotheses, places: Index) -> float:
        if not self._problem.unknown_shift:
            return float(np.abs(self._problem.shift[places]).max())
        used = hypotheses.chances > _RARE / len(hypotheses.chances)
        return float(np.abs(hypotheses.shifts).max(where=used, initial=0.0))

    def _best_contrast(self, hypotheses: Hypotheses, rng: np.random.Generator) -> Array:
        """Climb from a random direction: first by variance, then by information."""
        chances = hypotheses.chances
        start = rng.standard_normal(len(chances), dtype=np.float32)
        contrast = self._contrast(hypotheses, chances * start[:, None])
        if not contrast.any():  # nothing in doubt: any measurement that sees all streams
            return rng.standard_normal(self._problem.size)
        for _ in range(_POWER_STEPS):
            further = self._contrast(hypotheses, chances * self._means(hypotheses, contrast))
            contrast = further if further.any() else contrast
        best, highest = contrast, -math.inf
        for _ in range(_STEPS):
            information, left = _information(self._means(hypotheses, contrast), chances)
            if information < highest + _ENOUGH:
                break
            best, highest = contrast, information
            contrast = self._contrast(hypotheses, left)
            if not contrast.any():
                break
        return best

    def _contrast(self, hypotheses: Hypotheses, coefficients: Floats) -> Array:
        """sum_s coefficient_s (x_s - E x), scaled to a largest entry of 1."""
        rest, chances, rest_shifts, shifts = hypotheses
        coefficients = coefficients - np.float32(coefficients.sum(dtype=float)) * chances
        if self._problem.unknown_shift:
            total = (coefficients * shifts).sum(axis=0)
        else:
            total = coefficients.sum(axis=0, dtype=float) * shifts[0]
        by_row = coefficients.sum(axis=1, dtype=float)[:, None] * rest_shifts
        contrast: Array = (total + np.bincount(rest.ravel(), by_row.ravel(), minlength=total.size))[:-1]
        top = np.abs(contrast).max()
        return contrast / top if top > 0.0 else contrast

    def _means(self, hypotheses: Hypotheses, contrast: Array) -> Floats:
        """Mean readings of S^-1 contrast in units of its noise, centred."""
        c = self._problem.covariance.solve(contrast)
        h = np.append(c, 0.0) / math.sqrt(contrast @ c)
        last = h * (hypotheses.shifts if self._problem.unknown_shift else hypotheses.shifts[0])
        means = (h[hypotheses.rest] * hypotheses.rest_shifts).sum(axis=1)[:, None] + last
        means -= (means * hypotheses.chances).sum()  # chances add up to 1 within rounding
        return means.astype(np.float32)


def _information(means: Floats, chances: Floats) -> tuple[float, Floats]:
    """Nats that a reading N(mean, 1) tells of its hypothesis, and the coefficients of D in the hypotheses.

    D = E[Cov(x, m | y)] = sum_s p_s (m_s - E[ E[m | y] | s ]) x_s.
    """
    possible = chances > 0.0
    low = float(means.min(where=possible, initial=math.inf))
    span = float(means.max(where=possible, initial=-math.inf)) - low
    width = max(min(_WIDTH, span / _FEWEST), span / _BINS, _NARROWEST)
    place = (means - np.float32(low)) / np.float32(width)
    bins = np.clip(place + np.float32(0.5), 0, span / width + 1).astype(np.int32)
    mass = np.bincount(bins.ravel(), chances.ravel())
    grid = width * np.arange(mass.size)
    noise = max(1.0, width)
    reach = math.ceil(_REACH * noise / width)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * width / noise) ** 2)
    kernel /= kernel.sum()
    density = np.maximum(np.convolve(mass, kernel), _NEVER)
    expected = np.convolve(mass * grid, kernel) / density
    information = float(kernel @ np.log(kernel) - density @ np.log(density))
    left = (grid - np.convolve(expected, kernel, mode="valid")).astype(np.float32)
    slope = np.gradient(left) if left.size > 1 else np.ones_like(left)
    return information, chances * (left[bins] + slope[bins] * (place - bins))
