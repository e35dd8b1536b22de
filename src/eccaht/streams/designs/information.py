"""The measurement whose reading is most informative about which of many sets is the right one.

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

Once one set A is more probable than not, the others remain to be ruled out, and the most informative reading is not
the one that ends the search soonest: it dwells on the likeliest rivals. With d_s = x_s - x_A, the probability of taking
A for a rival of probability p_s, or it for A, after the reading is at most sqrt(p_A p_s) exp(-(c'd_s)^2 / (8 c'S c))
(Bhattacharyya). The c that makes the sum over all rivals smallest solves the same kind of equation,

    c  is proportional to  S^-1 D,   D = sum_s sqrt(p_s) exp(-(c'd_s)^2 / (8 c'S c)) (c'd_s) d_s.

Where measurements are under way, what the next one adds beyond them counts (docs/explanation/search.md). Their
readings are not known yet, but if set s is right, that of c_j has mean m_js in units of its noise. To separate A: the
bound on confusing A and s has a factor exp(-(m_js - m_jA)^2 / 8) for each of them, whatever they will read, so a rival
counts by what they leave of it. For information: it is averaged over their outcomes, which are drawn (a set by its
probability, and noise), each with the probabilities of the sets after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from eccaht.base.arrays import Array, Index, Mask, support_of
from eccaht.base.compiled import LONGEST_SUM, Loops
from eccaht.streams.designs.pair import among, check_weakest_pair
from eccaht.streams.measurements import NotShown
from eccaht.streams.problem import Problem
from eccaht.streams.sets import Hypotheses

_LIKELY = 0.5  # a set more probable than this is to be separated from its rivals
_POWER_STEPS, _STEPS = 2, 8
_ROUNDS = 3  # under constraints that reshape designs
_ENOUGH = 1e-3  # nats, or share of what separates: stop when a step gains less
_WIDTH = 0.25  # of a bin, in standard deviations of the noise
_FEWEST, _NARROWEST = 32, 0.02  # means that lie closer together get narrower bins
_BINS = 1024  # at most: where readings are far more precise than the sets differ, bins and noise are widened
_REACH = 5.0  # standard deviations of noise that count
_NEVER = 1e-300
_RARE = 1e-3  # share of a row's probability below which a stream's shift is ignored for the scale
# measurements under way:
_OUTCOMES = 12  # drawn
_DOUBT = 0.05  # on average after an outcome; where less is left the earlier readings are taken for noisier
_RATIO = 0.4  # of the weight of their evidence, then
_COUNTS = 1e-6  # probability below which a set is left out

_LOOPS = Loops("eccaht.streams.designs.loops")


class InformationDesign:
    """The most informative measurement about weighted hypotheses, or separates the likeliest from its rivals.

    check: refuse a problem in which some pair cannot be separated, before the search.
    """

    def __init__(self, problem: Problem, *, check: bool = True) -> None:
        self._problem = problem
        if check and not problem.unknown_shift:
            check_weakest_pair(problem)

    def __call__(
        self,
        hypotheses: Hypotheses,
        rng: np.random.Generator,
        pending: Sequence[Array] = (),
        available: Mask | None = None,
    ) -> Array:
        """Return allowed weights; `rng` draws the direction from which the iteration starts.

        pending: measurements that are under way; the information that the new one adds beyond them counts.
        available: the streams that can be measured now, two or more, where not all can.

        Where the constraint binds, as |c|_1 <= budget per unit of contrast may, c is the least noisy measurement of
        the contrast D under it; D is scaled like a swap, its largest entry being the largest shift in it.
        """
        means = [_mean_readings(hypotheses, c, self._problem.noise_variance(c)) for c in pending]
        earlier = np.array(means).reshape(len(pending), hypotheses.row.size)
        if available is None:
            return self._designed(hypotheses, rng, earlier)
        narrowed = among(self._problem, available)
        design = InformationDesign(narrowed.problem, check=False)
        return narrowed.spread(design._designed(narrowed.seen(hypotheses), rng, earlier))

    def _designed(self, hypotheses: Hypotheses, rng: np.random.Generator, earlier: Array) -> Array:
        aim = _aim(hypotheses.chance, earlier, rng)
        contrast = self._best_contrast(hypotheses, rng, aim)
        if not self._problem.designing.reshapes:
            return self._allowed(hypotheses, contrast)
        return self._iterated(hypotheses, contrast, rng, aim)

    def _allowed(self, hypotheses: Hypotheses, contrast: Array) -> Array:
        problem, places = self._problem, support_of(contrast)
        largest = max(self._largest_shift(hypotheses, places), problem.measurements.least_contrast)
        values = contrast[places] * (largest / np.abs(contrast).max())
        return problem.designing.contrast(problem.covariance, places, values).weights

    def _iterated(self, hypotheses: Hypotheses, contrast: Array, rng: np.random.Generator, aim: Aim) -> Array:
        """Go on with the contrasts that allowed measurements are about, and return the most informative one.

        Weights that are limited in sign, number or level may be far from S^-1 D, and what they leave in doubt is
        another contrast. It ends where the next contrast brings nothing.
        """
        problem, best, highest, value = self._problem, None, -math.inf, -math.inf
        for _ in range(_ROUNDS):
            try:
                c = self._allowed(hypotheses, contrast)
            except NotShown:
                if best is not None:
                    break
                # what is in doubt cannot be measured: any other measurement will do, if there is one
                c = self._allowed(hypotheses, rng.standard_normal(problem.size))
            means = self._standardised(hypotheses, c, problem.noise_variance(c))
            judged, coefficients = aim.judge(means)
            reached = aim.nats(judged)
            if best is None or reached > highest:
                best, highest = c, reached
            if reached < value + _ENOUGH:
                break
            value = reached
            contrast = self._contrast(hypotheses, coefficients)
            if not contrast.any():
                break
        assert best is not None
        return best

    def _largest_shift(self, hypotheses: Hypotheses, places: Index) -> float:
        if not self._problem.unknown_shift:
            return float(np.abs(self._problem.shift[places]).max())
        used = hypotheses.chance > _RARE / len(hypotheses.rest)
        return float(np.abs(hypotheses.shift).max(where=used, initial=0.0))

    def _best_contrast(self, hypotheses: Hypotheses, rng: np.random.Generator, aim: Aim) -> Array:
        """Climb from a random direction."""
        contrast = self._contrast(hypotheses, aim.start(rng))
        if not contrast.any():  # only one set is possible: any measurement of all streams will do
            return rng.standard_normal(self._problem.size)
        for _ in range(aim.power_steps):
            further = self._contrast(hypotheses, aim.spread(self._means(hypotheses, contrast)))
            contrast = further if further.any() else contrast
        best, highest = contrast, -math.inf
        for _ in range(_STEPS):
            value, coefficients = aim.judge(self._means(hypotheses, contrast), highest + _ENOUGH)
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
        if (loops := _LOOPS()) is not None:
            by_row, (D, inside) = np.zeros(len(rest)), np.zeros((2, self._problem.size + 1))
            of_sets, of_rest = (chance, row, stream, shift), (rest, rest_shifts)
            largest = loops.add_contrast(coefficients, coefficients.sum(), *of_sets, *of_rest, by_row, D, inside)
            return D[:-1] / largest if largest > 0.0 else D[:-1]
        coefficients = coefficients - coefficients.sum() * chance
        by_row = np.bincount(row, coefficients, minlength=len(rest))[:, None] * rest_shifts
        total = np.bincount(stream, coefficients * shift, minlength=self._problem.size + 1)
        total = total + np.bincount(rest.ravel(), by_row.ravel(), minlength=total.size)
        contrast: Array = total[:-1].astype(float, copy=False)
        top = np.abs(contrast).max()
        return contrast / top if top > 0.0 else contrast

    def _means(self, hypotheses: Hypotheses, contrast: Array) -> Array:
        """Mean readings of S^-1 contrast in units of its noise, centred."""
        c = self._problem.covariance.solve(contrast)
        return self._standardised(hypotheses, c, float(contrast @ c))

    def _standardised(self, hypotheses: Hypotheses, c: Array, variance: float) -> Array:
        means = _mean_readings(hypotheses, c, variance)
        means -= hypotheses.chance @ means
        return means


def _mean_readings(hypotheses: Hypotheses, c: Array, variance: float) -> Array:
    """The mean reading of c under each hypothesis in units of its noise, (N,)."""
    rest, rest_shifts, row, stream, shift, _ = hypotheses
    if rest.shape[1] <= LONGEST_SUM and (loops := _LOOPS()) is not None:
        return np.asarray(loops.add_readings(c, math.sqrt(variance), rest, rest_shifts, row, stream, shift))
    h = np.append(c, 0.0) / math.sqrt(variance)
    means: Array = (h[rest] * rest_shifts).sum(axis=1)[row] + h[stream] * shift
    return means


@lru_cache(maxsize=8)  # most widths are _WIDTH
def _noise(width: float) -> tuple[Array, float]:
    """The distribution of the noise over bins, which sums to 1, and minus its entropy."""
    noise = max(1.0, width)
    reach = math.ceil(_REACH * noise / width)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * width / noise) ** 2)
    kernel /= kernel.sum()
    return kernel, kernel @ np.log(kernel)


def _aim(chance: Array, earlier: Array, rng: np.random.Generator) -> Aim:
    """What a measurement is for, given those under way."""
    likeliest = int(chance.argmax())
    if chance[likeliest] > _LIKELY:
        return _Separation(left_of(chance, likeliest, earlier) if len(earlier) else chance, likeliest)
    return _FurtherInformation(Outcomes(chance, earlier, rng), chance.size) if len(earlier) else _Information(chance)


class _Separation:
    """Separate the likeliest hypothesis from its rivals."""

    power_steps = 0

    def __init__(self, chance: Array, likeliest: int) -> None:
        self._likeliest, self._rivals = likeliest, np.sqrt(chance)
        self._rivals[likeliest] = 0.0
        self._rivals /= max(self._rivals.sum(), _NEVER)

    def start(self, rng: np.random.Generator) -> Array:
        return self._against(self._rivals * rng.standard_normal(self._rivals.size))

    def spread(self, means: Array) -> Array:
        return self._rivals * means

    def judge(self, means: Array, least: float = -math.inf) -> tuple[float, Array]:  # noqa: ARG002
        """1 - sum_s sqrt(p_s) exp(-m_s^2 / 8), rivals weighed to 1 together, and the coefficients of D."""
        distance = means - means[self._likeliest]
        left = self._rivals * np.exp(-0.125 * distance**2)
        return 1.0 - float(left.sum()), self._against(left * distance)

    def nats(self, value: float) -> float:
        """By how much a reading lowers the logarithm of what is left."""
        return -math.log(max(1.0 - value, _NEVER))

    def _against(self, coefficients: Array) -> Array:
        """Of differences from the likeliest: its own makes them add up to 0."""
        coefficients[self._likeliest] = -coefficients.sum()
        return coefficients


class _Information:
    """Be most informative about which hypothesis is right."""

    power_steps = _POWER_STEPS

    def __init__(self, chance: Array) -> None:
        self._chance = chance

    def start(self, rng: np.random.Generator) -> Array:
        return self._chance * rng.standard_normal(self._chance.size)

    def spread(self, means: Array) -> Array:
        return self._chance * means

    def centred(self, coefficients: Array) -> Array:
        """Of differences from the mean: they add up to 0."""
        return coefficients - coefficients.sum() * self._chance

    def nats(self, value: float) -> float:
        return value

    def judge(self, means: Array, least: float = -math.inf) -> tuple[float, Array]:
        """Nats of information in a reading N(mean, 1), and the coefficients of D, unless there are fewer than `least`.

        D = E[Cov(x, m | y)] = sum_s p_s (m_s - E[ E[m | y] | s ]) x_s.
        """
        chance, low = self._chance, means.min()
        span = float(means.max() - low)
        width = max(min(_WIDTH, span / _FEWEST), span / _BINS, _NARROWEST)
        loops = _LOOPS()
        mass: Array
        if loops is None:
            place = (means - low) / width
            bins = (place + 0.5).astype(np.intp)
            mass = np.bincount(bins, chance).astype(float, copy=False)
        else:
            mass = np.zeros(int(span / width + 0.5) + 1)
            loops.fill_bins(means, low, width, chance, mass)
        grid = width * np.arange(mass.size)
        kernel, entropy = _noise(width)
        density = np.maximum(np.convolve(mass, kernel), _NEVER)
        information = float(entropy - density @ np.log(density))
        if information < least:
            return information, means
        expected = np.convolve(mass * grid, kernel) / density
        left: Array = grid - np.convolve(expected, kernel, mode="valid")
        if loops is not None:
            return information, loops.from_bins(means, low, width, chance, left)
        slope = np.gradient(left) if left.size > 1 else np.ones_like(left)
        return information, chance * (left[bins] + slope[bins] * (place - bins))


class _FurtherInformation:
    """Be most informative about which hypothesis is right beyond the readings under way."""

    power_steps = _POWER_STEPS

    def __init__(self, outcomes: Outcomes, size: int) -> None:
        self._sets, self._size = outcomes.sets, size
        self._aims = [_Information(chance) for chance in outcomes.chances]

    def start(self, rng: np.random.Generator) -> Array:
        return self._together([aim.centred(aim.start(rng)) for aim in self._aims])

    def spread(self, means: Array) -> Array:
        """Coefficients of Cov(x) c, on average over the outcomes."""
        return self._together(
            [aim.centred(aim.spread(means[s])) for aim, s in zip(self._aims, self._sets, strict=True)]
        )

    def judge(self, means: Array, least: float = -math.inf) -> tuple[float, Array]:  # noqa: ARG002
        """Nats on average, and the coefficients of D."""
        judged = [aim.judge(means[some]) for aim, some in zip(self._aims, self._sets, strict=True)]
        information = sum(value for value, _ in judged) / len(judged)
        return information, self._together([a.centred(left) for a, (_, left) in zip(self._aims, judged, strict=True)])

    def nats(self, value: float) -> float:
        return value

    def _together(self, parts: list[Array]) -> Array:
        total = np.bincount(np.concatenate(self._sets), np.concatenate(parts), minlength=self._size)
        return total.astype(float, copy=False)


Aim = _Separation | _Information | _FurtherInformation


def left_of(chance: Array, likeliest: int, earlier: Array) -> Array:
    """Weights of the rivals of a set after readings with these means, (m, N), in proportion to those of `chance`."""
    exponent = -0.25 * ((earlier - earlier[:, likeliest : likeliest + 1]) ** 2).sum(axis=0)  # of sqrt(chance), squared
    with np.errstate(divide="ignore"):
        log_weights = np.log(chance) + exponent
    log_weights[likeliest] = -np.inf
    top = float(log_weights.max())
    return np.exp(log_weights - top) if np.isfinite(top) else np.zeros(chance.size)


class Outcomes:
    """Probabilities of the sets after each of some outcomes of the earlier readings."""

    def __init__(self, chance: Array, earlier: Array, rng: np.random.Generator) -> None:
        line, count = chance.cumsum(), _OUTCOMES
        drawn = np.searchsorted(line, (np.arange(count) + rng.random(count)) / count * line[-1], side="right")
        drawn = np.minimum(drawn, chance.size - 1)
        read = earlier[:, drawn] + rng.standard_normal((len(earlier), count))
        misfit = np.zeros((count, chance.size))
        for outcomes, expected in zip(read, earlier, strict=True):
            misfit += (outcomes[:, None] - expected) ** 2
        misfit -= misfit.min(axis=1, keepdims=True)
        self.sets: list[Index] = []
        self.chances: list[Array] = []
        weight = 1.0
        while True:
            after = chance * np.exp(-0.5 * weight * misfit)
            after = after / after.sum(axis=1, keepdims=True)
            if not (float(1.0 - after.max(axis=1).mean()) < _DOUBT and weight > 1e-9):
                break
            weight *= _RATIO
        for probabilities in after:
            (some,) = np.nonzero(probabilities > _COUNTS)
            self.sets.append(some)
            self.chances.append(probabilities[some] / probabilities[some].sum())
