"""The measurement whose reading tells most about which of many sets is the right one.

If set s is right, with shifts x_s, the reading of c has mean c'x_s, and its noise variance is c'S c in any case. Among
all c the one of largest mutual information between set and reading is wanted. The gradient of that information is
known in closed form: it is the covariance of x and c'x that is expected to be *left* after the reading (Palomar
& Verdu 2006). So at a maximum

    c  is proportional to  S^-1 D,   D = E[ Cov(x, c'x | reading) ],

which is solved by iteration. D is the contrast that the reading is about: for two sets it is their difference,
and c their pair design. Where readings are noisy, one reading decides little: D = Cov(x) c, and c is the top
generalized eigenvector of (Cov(x), S): the direction of largest variance. Where readings are precise that direction
would spend a whole reading on one doubtful stream, while the largest-information one decides about several at once.

The information depends on the means c'x_s alone, which are numbers on a line: they are counted into bins a quarter
of the noise wide, so that any number of sets costs one pass and a short convolution.

Once one set A is more probable than not, what remains is to rule out the others, and the reading that tells most is not
the one that ends the search soonest: it dwells on the likeliest rivals. With d_s = x_s - x_A, the probability of taking
A for a rival of probability p_s, or it for A, after the reading is at most sqrt(p_A p_s) exp(-(c'd_s)^2 / (8 c'S c))
(Bhattacharyya). The c that makes the sum over all rivals smallest solves the same kind of equation,

    c  is proportional to  S^-1 D,   D = sum_s sqrt(p_s) exp(-(c'd_s)^2 / (8 c'S c)) (c'd_s) d_s.
"""

from __future__ import annotations

import math

import numpy as np

from eccaht.arrays import Array, Index, support_of
from eccaht.measure.pair import check_weakest_pair
from eccaht.problem import Problem
from eccaht.sets import Hypotheses

_LIKELY = 0.5  # a set more probable than this is to be separated from its rivals
_POWER_STEPS, _STEPS = 2, 8
_ENOUGH = 1e-3  # nats, or share of what separates: stop when a step gains less
_WIDTH = 0.25  # of a bin, in standard deviations of the noise
_FEWEST, _NARROWEST = 32, 0.02  # means that lie closer together get narrower bins
_BINS = 1024  # at most: where readings are far more precise than the sets differ, bins and noise are widened
_REACH = 5.0  # standard deviations of noise that count
_NEVER = 1e-300
_RARE = 1e-3  # share of a row's probability below which a stream's shift is ignored for the scale


class InformationDesign:
    """The measurement that tells most about weighted hypotheses, or separates the likeliest from its rivals."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        if not problem.unknown_shift:
            check_weakest_pair(problem)

    def __call__(self, hypotheses: Hypotheses, rng: np.random.Generator) -> Array:
        """Return allowed weights; `rng` draws the direction from which the iteration starts.

        Where the constraint binds, as |c|_1 <= budget per unit of contrast may, c is the least noisy measurement of
        the contrast D under it; D is scaled like a swap, its largest entry being the largest shift in it.
        """
        problem = self._problem
        contrast = self._best_contrast(hypotheses, rng)
        places = support_of(contrast)
        largest = max(self._largest_shift(hypotheses, places), problem.measurements.least_contrast)
        values = contrast[places] * (largest / np.abs(contrast).max())
        return problem.measurements.contrast(problem.covariance, places, values).weights

    def _largest_shift(self, hypotheses: Hypotheses, places: Index) -> float:
        if not self._problem.unknown_shift:
            return float(np.abs(self._problem.shift[places]).max())
        used = hypotheses.chance > _RARE / len(hypotheses.rest)
        return float(np.abs(hypotheses.shift).max(where=used, initial=0.0))

    def _best_contrast(self, hypotheses: Hypotheses, rng: np.random.Generator) -> Array:
        """Climb from a random direction."""
        chance = hypotheses.chance
        likeliest = int(chance.argmax())
        aim = _Separation(chance, likeliest) if chance[likeliest] > _LIKELY else _Information(chance)
        contrast = self._contrast(hypotheses, aim.start(rng))
        if not contrast.any():  # only one set is possible: any measurement of all streams will do
            return rng.standard_normal(self._problem.size)
        for _ in range(aim.power_steps):
            further = self._contrast(hypotheses, chance * self._means(hypotheses, contrast))
            contrast = further if further.any() else contrast
        best, highest = contrast, -math.inf
        for _ in range(_STEPS):
            value, coefficients = aim.judge(self._means(hypotheses, contrast))
            if value < highest + _ENOUGH:
                break
            best, highest = contrast, value
            contrast = self._contrast(hypotheses, coefficients)
            if not contrast.any():
                break
        return best

    def _contrast(self, hypotheses: Hypotheses, coefficients: Array) -> Array:
        """sum_s coefficient_s (x_s - E x), scaled to a largest entry of 1."""
        rest, rest_shifts, row, stream, shift, chance = hypotheses
        coefficients = coefficients - coefficients.sum() * chance
        by_row = np.bincount(row, coefficients, minlength=len(rest))[:, None] * rest_shifts
        total = np.bincount(stream, coefficients * shift, minlength=self._problem.size + 1)
        total = total + np.bincount(rest.ravel(), by_row.ravel(), minlength=total.size)
        contrast: Array = total[:-1].astype(float, copy=False)
        top = np.abs(contrast).max()
        return contrast / top if top > 0.0 else contrast

    def _means(self, hypotheses: Hypotheses, contrast: Array) -> Array:
        """Mean readings of S^-1 contrast in units of its noise, centred."""
        rest, rest_shifts, row, stream, shift, chance = hypotheses
        c = self._problem.covariance.solve(contrast)
        h = np.append(c, 0.0) / math.sqrt(contrast @ c)
        means: Array = (h[rest] * rest_shifts).sum(axis=1)[row] + h[stream] * shift
        return means - chance @ means


class _Separation:
    """Separate the likeliest hypothesis from its rivals."""

    power_steps = 0

    def __init__(self, chance: Array, likeliest: int) -> None:
        self._likeliest, self._rivals = likeliest, np.sqrt(chance)
        self._rivals[likeliest] = 0.0
        self._rivals /= max(self._rivals.sum(), _NEVER)

    def start(self, rng: np.random.Generator) -> Array:
        """Coefficients of a random direction."""
        return self._against(self._rivals * rng.standard_normal(self._rivals.size))

    def judge(self, means: Array) -> tuple[float, Array]:
        """1 - sum_s sqrt(p_s) exp(-m_s^2 / 8), rivals weighed to 1 together, and the coefficients of D."""
        distance = means - means[self._likeliest]
        left = self._rivals * np.exp(-0.125 * distance**2)
        return 1.0 - float(left.sum()), self._against(left * distance)

    def _against(self, coefficients: Array) -> Array:
        """Of differences from the likeliest: its own makes them add up to 0."""
        coefficients[self._likeliest] = -coefficients.sum()
        return coefficients


class _Information:
    """Tell most about which hypothesis is right."""

    power_steps = _POWER_STEPS

    def __init__(self, chance: Array) -> None:
        self._chance = chance

    def start(self, rng: np.random.Generator) -> Array:
        """Coefficients of a random direction."""
        return self._chance * rng.standard_normal(self._chance.size)

    def judge(self, means: Array) -> tuple[float, Array]:
        """Nats that a reading N(mean, 1) tells, and the coefficients of D.

        D = E[Cov(x, m | y)] = sum_s p_s (m_s - E[ E[m | y] | s ]) x_s.
        """
        chance, low = self._chance, means.min()
        span = float(means.max() - low)
        width = max(min(_WIDTH, span / _FEWEST), span / _BINS, _NARROWEST)
        place = (means - low) / width
        bins = (place + 0.5).astype(np.intp)
        mass = np.bincount(bins, chance)
        grid = width * np.arange(mass.size)
        noise = max(1.0, width)
        reach = math.ceil(_REACH * noise / width)
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * width / noise) ** 2)
        kernel /= kernel.sum()
        density = np.maximum(np.convolve(mass, kernel), _NEVER)
        expected = np.convolve(mass * grid, kernel) / density
        information = float(kernel @ np.log(kernel) - density @ np.log(density))
        left = grid - np.convolve(expected, kernel, mode="valid")
        slope = np.gradient(left) if left.size > 1 else np.ones_like(left)
        return information, chance * (left[bins] + slope[bins] * (place - bins))
