"""Mean and covariance from vectors of the streams, such that designs show as much noise as they are believed to.

A design looks for directions of little noise, and so finds those whose noise the sample understates: with the sample
covariance of m = 2K vectors it has four times the noise it is believed to have. What is estimated here instead is the
noise along the eigenvectors of the sample, on vectors that they were not computed from (cross-validation by tenths of
neighbouring vectors; Bartz 2016), in the order of the sample's eigenvalues (isotonic regression). Nothing is assumed of
the distribution, and there may be fewer vectors than streams. What is left is measured on pair designs, and put on all
noise (docs/explanation/confidence.md).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import isotonic_regression

from eccaht.base.arrays import Array, Index, as_floats, check_finite

FEWEST = 10  # vectors, and readings of each stream
_FOLDS = 10
_ROUNDS = 30  # of the estimate that missing values are drawn from
_LEAST = 1e-9  # of the largest eigenvalue
_PRICE = 0.5 * math.log(1.0 / 0.05)  # of the squared relative error of a variance, for an error rate of 5 %


class Sampled(NamedTuple):
    """What vectors say: mean, (K,), covariance, (K, K), and how many whole vectors the mean is worth."""

    mean: Array
    covariance: Array
    worth: int


def sampled(X: object) -> Sampled:
    """Estimate from rows that are vectors of all streams, NaN where one was not read.

    >>> rng = np.random.default_rng(0)
    >>> found = sampled(rng.standard_normal((400, 3)) * [1.0, 2.0, 3.0])
    >>> found.covariance.diagonal().round(), found.worth
    (array([1., 4., 9.]), 400)
    """
    rows = _checked(X)
    there = ~np.isnan(rows)
    mean, deviation = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0, ddof=1)
    if not deviation.all():
        raise ValueError(f"stream {int(np.argmin(deviation))} has one value in all vectors: leave it out")
    whole = _completed((rows - mean) / deviation)
    shrunk, understated = _shrunk(whole)
    covariance = max(understated, 1.0) * shrunk * np.outer(deviation, deviation)
    worth = round(1.0 / np.mean(1.0 / there.sum(axis=0)))
    return Sampled(mean + whole.mean(axis=0) * deviation, covariance, worth)


def inflation(m: int, size: int) -> float:
    """By how much the noise of a design in the mean exceeds what the sample covariance of m Gaussian vectors says.

    (m - 1) / (m - K) by the bias of its inverse, m / (m - K + 1) by weights that fit the noise of the sample (Reed,
    Mallett & Brennan 1974).

    >>> round(inflation(60, 30), 2)
    3.81
    """
    return (m - 1) / (m - size) * m / (m - size + 1)


def _checked(X: object) -> Array:
    rows = as_floats(X, "vectors")  # type: ignore[arg-type]
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"vectors are the rows of a table, one column a stream, not of shape {rows.shape}")
    check_finite(np.where(np.isnan(rows), 0.0, rows), "vectors")
    rows = rows[~np.isnan(rows).all(axis=1)]
    counts = (~np.isnan(rows)).sum(axis=0)
    if len(rows) < FEWEST or counts.min() < FEWEST:
        few = f"stream {int(counts.argmin())} has {counts.min()} readings" if len(rows) else "there is none"
        raise ValueError(f"{few}: a covariance needs at least {FEWEST} vectors in which each stream was read")
    return rows


def _shrunk(Z: Array) -> tuple[Array, float]:
    """The covariance of standardised rows, and by how much the noise of pair designs exceeds what it says."""
    m, K = Z.shape
    folds = [np.arange(m) // -(-m // _FOLDS) == k for k in range(_FOLDS)]
    folds = [fold for fold in folds if fold.any()]
    bases, held = zip(*(_against(Z[~fold], Z[fold]) for fold in folds), strict=True)
    powers = np.array([((rows @ basis) ** 2).sum(axis=0) for basis, rows in zip(bases, held, strict=True)])
    sizes, total, squares = np.array([len(rows) for rows in held]), np.zeros((K, K)), np.zeros((K, K))
    for k, (basis, rows) in enumerate(zip(bases, held, strict=True)):
        others = _ordered((powers.sum(axis=0) - powers[k]) / (m - sizes[k]))
        inverse = (basis / others) @ basis.T
        seen = rows @ inverse
        believed = _of_pairs(inverse)
        ratio = _of_pairs(seen.T @ seen) / np.where(believed > 0.0, believed, 1.0)
        total += ratio
        squares += ratio**2 / sizes[k]
    mean = total / m
    spread = (squares / m - mean**2) / (len(folds) - 1)  # of the mean over the folds, squared
    left = (mean + _PRICE * spread / np.where(mean > 0.0, mean, 1.0))[~np.eye(K, dtype=bool)]
    basis = np.linalg.eigh(Z.T @ Z)[1]
    return (basis * _ordered(powers.sum(axis=0) / m)) @ basis.T, float(left.mean()) if K > 1 else 1.0


def _against(known: Array, held: Array) -> tuple[Array, Array]:
    """The eigenvectors of the known rows, and the others beyond their mean, with the noise of a row."""
    mean = known.mean(axis=0)
    centred = known - mean
    return np.linalg.eigh(centred.T @ centred)[1], (held - mean) / np.sqrt(1.0 + 1.0 / len(known))


def _ordered(powers: Array) -> Array:
    rising = isotonic_regression(powers).x
    return np.maximum(rising, _LEAST * rising[-1])


def _of_pairs(Q: Array) -> Array:
    """(e_i - e_j)'Q (e_i - e_j) for all pairs."""
    return np.asarray(Q.diagonal()[:, None] + Q.diagonal() - 2.0 * Q)


def _completed(Z: Array) -> Array:
    """Standardised rows with what is missing drawn from a Gaussian, given what is there.

    Its mean and covariance are fitted by the EM algorithm, pulled towards independent streams where rows are few. What
    is missing must not depend on its value, given what is there.
    """
    missing = np.isnan(Z)
    if not missing.any():
        return Z
    m, K = Z.shape
    patterns, of_row = np.unique(missing, axis=0, return_inverse=True)
    places = [np.flatnonzero(of_row.ravel() == k) for k in range(len(patterns))]
    filled, mean, S = np.where(missing, 0.0, Z), np.zeros(K), np.eye(K)
    for _ in range(_ROUNDS):
        unsure = np.zeros((K, K))
        for gone, rows in zip(patterns, places, strict=True):
            filled[np.ix_(rows, gone)], left = _given(filled[rows], mean, S, gone)
            unsure[np.ix_(gone, gone)] += len(rows) * left
        mean = filled.mean(axis=0)
        centred = filled - mean
        S = (centred.T @ centred + unsure) / m
        S += K / (K + m) * (np.diag(S.diagonal()) - S)
    rng = np.random.default_rng(0)
    for gone, rows in zip(patterns, places, strict=True):
        expected, left = _given(filled[rows], mean, S, gone)
        root = np.linalg.cholesky(left) if gone.any() else left
        filled[np.ix_(rows, gone)] = expected + rng.standard_normal(expected.shape) @ root.T
    return filled


def _given(rows: Array, mean: Array, S: Array, gone: Index) -> tuple[Array, Array]:
    """Mean of the missing streams of each row, given the others, and their covariance."""
    across = S[np.ix_(~gone, gone)]
    weights = cho_solve(cho_factor(S[np.ix_(~gone, ~gone)]), across)
    return mean[gone] + (rows[:, ~gone] - mean[~gone]) @ weights, S[np.ix_(gone, gone)] - across.T @ weights
