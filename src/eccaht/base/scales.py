"""Which numbers can be computed with: squares and quotients of them stay finite, and sums keep the digits that matter.

Everything that is computed is a ratio of signal to noise, a square of one, or a sum of such squares. With noise
deviations from 1e-30 to 1e30 and signals of 1e-15 to 1e15 deviations the largest square is below 1e100 even where noise
cancels to the last digit, and the square of that is still finite.
"""

from __future__ import annotations

import math

import numpy as np

from eccaht.base.arrays import Array

SMALLEST, LARGEST = 1e-30, 1e30  # of what has a unit: deviations, shifts, weights
_WEAKEST, _STRONGEST = 1e-15, 1e15  # shifts in noise deviations
_FARTHEST = 1e15  # noise deviations of a reading from its mean
_ROUNDING = 1e-6  # of a noise deviation that may be lost beside a mean
_UNITS = "use other units"
_FAR = f"is more than {_FARTHEST:g} noise deviations from its mean: check its unit, or leave it out"


def check_size(value: float, what: str) -> None:
    """Refuse a positive number whose square could not be computed with."""
    if not SMALLEST <= value <= LARGEST:
        raise ValueError(f"{what} = {value:g} is not between {SMALLEST:g} and {LARGEST:g}: {_UNITS}")


def check_entries(values: Array, what: str) -> None:
    """Refuse entries of a covariance beyond the largest variance."""
    if values.size and not float(np.abs(values).max()) <= LARGEST**2:
        raise ValueError(f"{what} has an entry above {LARGEST**2:g}: {_UNITS}")


def check_problem(variances: Array, shift: Array, spread: Array, mean: Array, noise: float) -> None:
    """Refuse streams whose numbers are too far apart; `noise` is the instrument's in a stream of full weight."""
    size, deviations = np.maximum(np.abs(shift), spread), np.sqrt(variances)
    _check_each(variances, SMALLEST**2, LARGEST**2, "the variance", _UNITS)
    _check_each(size, SMALLEST, LARGEST, "the shift", _UNITS)
    ratio, same = "the ratio of shift to noise deviation", "give both in the same unit"
    _check_each(size / deviations, _WEAKEST, _STRONGEST, ratio, same)
    lost = np.abs(mean / np.hypot(deviations, noise)) * np.finfo(float).eps
    beside = "the share of a noise deviation that rounding beside the mean loses"
    _check_each(lost, 0.0, _ROUNDING, beside, "subtract the mean")


def check_weights(weights: Array) -> None:
    """Refuse a measurement whose noise could not be computed."""
    largest = float(np.abs(weights).max())
    if not SMALLEST <= largest <= LARGEST:
        between = f"not between {SMALLEST:g} and {LARGEST:g}: scale it to the budget"
        raise ValueError(f"measurement has a largest weight of {largest:g}, {between}")


def check_reading(residual: float, variance: float) -> None:
    """Refuse a reading that is too far from the mean to be one."""
    if not variance > 0.0:
        raise ValueError(
            f"measurement has a noise variance of {variance:g} after rounding: add a ridge to the covariance"
        )
    if not abs(residual) <= _FARTHEST * math.sqrt(variance):
        raise ValueError(f"reading {_FAR}")


def check_vector(residual: Array, variances: Array) -> None:
    """Refuse a reading of all streams, of which one is too far from its mean; NaN is none."""
    far = np.abs(residual) > _FARTHEST * np.sqrt(variances)
    if far.any():
        raise ValueError(f"reading of stream {int(far.argmax())} {_FAR}")


def _check_each(values: Array, least: float, most: float, what: str, remedy: str) -> None:
    good = (values >= least) & (values <= most)
    if not good.all():
        k = int(good.argmin())
        bound = f"below {least:g}" if values[k] < least else f"above {most:g}"
        raise ValueError(f"{what} of stream {k} is {float(values[k]):.3g}, {bound}: {remedy}")
