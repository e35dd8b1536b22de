"""Compiled loops over thousands of hypotheses: what `information` does with them in numpy, bit for bit."""

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.base.compiled import compiled, sum_of


@compiled
def add_contrast(
    coefficients: Array,
    excess: float,
    chance: Array,
    row: Index,
    stream: Index,
    shift: Array,
    rest: Index,
    rest_shifts: Array,
    by_row: Array,
    total: Array,
    inside: Array,
) -> float:
    """sum_s (coefficient_s - excess p_s) x_s into `total`; return its largest entry. The last three start at 0."""
    here, of_row = 0, 0.0
    for s in range(row.size):
        if row[s] != here:  # sets of a row follow each other: their sum stays in a register
            by_row[here] = of_row
            here = row[s]
            of_row = by_row[here]
        coefficient = coefficients[s] - excess * chance[s]
        of_row += coefficient
        total[stream[s]] += coefficient * shift[s]
    by_row[here] = of_row
    for r in range(rest.shape[0]):
        for slot in range(rest.shape[1]):
            inside[rest[r, slot]] += by_row[r] * rest_shifts[r, slot]
    top = 0.0
    for k in range(total.size - 1):  # the last place is that of an EMPTY slot
        total[k] += inside[k]
        top = max(top, abs(total[k]))
    return top


@compiled
def add_readings(
    c: Array, deviation: float, rest: Index, rest_shifts: Array, row: Index, stream: Index, shift: Array
) -> Array:
    """The mean reading of c under each hypothesis in units of its noise; rests of up to 128 streams."""
    empty, of_rest, means = c.size, np.empty(len(rest)), np.empty(row.size)
    h, terms = np.empty(empty + 1), np.empty(rest.shape[1])
    for k in range(empty):
        h[k] = c[k] / deviation
    h[empty] = 0.0
    for r in range(len(rest)):
        for slot in range(rest.shape[1]):
            terms[slot] = h[rest[r, slot]] * rest_shifts[r, slot]
        of_rest[r] = sum_of(terms, terms.size)
    for s in range(row.size):
        means[s] = of_rest[row[s]] + h[stream[s]] * shift[s]
    return means


@compiled
def fill_bins(means: Array, low: float, width: float, chance: Array, mass: Array) -> None:
    """The probability of each bin, which starts at 0."""
    for s in range(means.size):
        mass[int((means[s] - low) / width + 0.5)] += chance[s]


@compiled
def from_bins(means: Array, low: float, width: float, chance: Array, left: Array) -> Array:
    """The probability of each hypothesis times a function of its mean, linear within a bin, (N,)."""
    found, slope, last = np.empty_like(means), np.ones_like(left), left.size - 1
    if last > 0:
        slope[0], slope[last] = left[1] - left[0], left[last] - left[last - 1]
    for k in range(1, last):
        slope[k] = (left[k + 1] - left[k - 1]) / 2.0
    for s in range(means.size):
        place = (means[s] - low) / width
        at = int(place + 0.5)
        found[s] = chance[s] * (left[at] + slope[at] * (place - at))
    return found
