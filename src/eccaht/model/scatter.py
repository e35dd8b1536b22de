"""What the scores of sensors share: their scatter, and the log density of a Gaussian or a multivariate t with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import gammaln

from eccaht.arrays import Array
from eccaht.model.estimators import estimate

_LEAST_SCORE = 0.5  # standard deviation of scores; a sensor that moves in less than one window of twenty has a smaller
# one, and would seem surprising beyond what the rank of its deviation says
_RIDGE = 1e-6  # beside a variance of 1, for copies of a sensor
_ROUNDS, _SETTLED = 100, 1e-6  # of the search for a scale


def ledoit_wolf(rows: Array) -> Array:
    """Second moments about 0 of rows, (N, K), shrunk towards a multiple of the identity (Ledoit & Wolf 2004).

    >>> ledoit_wolf(np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]])).round(3)
    array([[1., 1.],
           [1., 1.]])
    """
    N, K = rows.shape
    moments = rows.T @ rows / N
    middle = float(moments.trace() / K)
    distance = float((moments**2).sum() - K * middle**2)  # squared, from the target
    error = float(((rows**2).sum(axis=1) ** 2).mean() - (moments**2).sum()) / N  # of the moments, likewise
    share = min(max(error, 0.0), distance) / distance if distance > 0 else 0.0
    return np.asarray((1.0 - share) * moments + share * middle * np.eye(K))


def scatter_of(scores: Array, estimator: str = "ledoit-wolf", ridge: float = 0.0) -> Array:
    """Scatter of normal scores about 0; one that hardly ever moves keeps a variance of its own.

    ridge: added to standardised scores.
    """
    size = np.sqrt(np.mean(scores**2, axis=0))
    scale = np.maximum(size, _LEAST_SCORE)
    standard = scores / scale
    if estimator == "ledoit-wolf":
        matrix = ledoit_wolf(standard) + ridge * np.eye(scores.shape[1])
    else:
        moving = np.flatnonzero(standard.std(axis=0) > 0)
        matrix = np.zeros((scores.shape[1],) * 2)
        fitted = estimate(standard[:, moving], estimator, ridge)[1]
        matrix[np.ix_(moving, moving)] = fitted.dense()
    matrix[np.diag_indices_from(matrix)] += 1.0 - (size / scale) ** 2 + _RIDGE
    return np.asarray(matrix * np.outer(scale, scale))


def shrunk(matrix: Array, share: float) -> Array:
    """(1 - s) R + s diag(R)."""
    return np.asarray((1.0 - share) * matrix + share * np.diag(matrix.diagonal()))


def densities_of(
    first: Array, last: Array, shrinks: Sequence[float], degrees: Sequence[float]
) -> dict[tuple[float, float], Array]:
    """Log densities of the last rows about 0, by shrinkage and degrees of freedom, with the scatter of the first."""
    matrix = scatter_of(first)
    found = {}
    for share in shrinks:
        root = cholesky(shrunk(matrix, share), lower=True)
        white = solve_triangular(root, last.T, lower=True)
        distances = np.einsum("kt,kt->t", white, white)
        for nu in degrees:
            found[share, nu] = log_density(distances, root, nu)
    return found


def log_density(distances: Array, root: Array, nu: float) -> Array:
    """Of a Gaussian (nu infinite) or a multivariate t with the scatter R = root root'; distances: x' R^-1 x."""
    K, half = len(root), float(np.log(root.diagonal()).sum())  # log det(R) / 2
    if np.isinf(nu):
        return np.asarray(-half - 0.5 * (K * np.log(2 * np.pi) + distances))
    constant = gammaln((nu + K) / 2) - gammaln(nu / 2) - 0.5 * K * np.log(nu * np.pi)
    return np.asarray(constant - half - 0.5 * (nu + K) * np.log1p(distances / nu))


def t_scale(values: Array, nu: float, least: Array) -> Array:
    """The most likely scale of a t about 0 for each column of values, at least `least`."""
    squares = values**2
    square = np.maximum(squares.mean(axis=0), least**2)
    for _ in range(_ROUNDS):  # each round is one of expectation and maximisation
        weights = (nu + 1.0) / (nu + squares / square)
        better = np.maximum((weights * squares).mean(axis=0) / weights.mean(axis=0), least**2)
        settled = bool((np.abs(better - square) <= _SETTLED * square).all())
        square = better
        if settled:
            break
    return np.asarray(np.sqrt(square))
